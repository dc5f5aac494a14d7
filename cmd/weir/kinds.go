package main

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/file"
	"github.com/weirlog/weir/router/sqlstore"
)

// A kind is one kind of destination. There is one kind of source, package
// socket, and one of filter, package wasmhost.
type kind struct {
	key        string     // of the destination's mapping, by which it is known
	flushLines int        // default
	settings   func() any // a new Config, by pointer; it may implement config.Checker
	open       func(ctx context.Context, settings any, at site) (router.Destination, error)
}

// site is what a destination is told beside its settings.
type site struct {
	name     string // in the configuration
	stateDir string // where relative paths begin
	log      *slog.Logger
}

// destinationKinds lists every kind of destination that exists.
var destinationKinds = []kind{
	{"sqlite", 1000, newSettingsOf[sqlstore.Config], openSQL},
	{"postgres", 5000, newSettingsOf[sqlstore.Config], openSQL},
	{"stdout", 1000, newSettingsOf[file.StdoutConfig], func(context.Context, any, site) (router.Destination, error) {
		return &file.Stdout{W: os.Stdout}, nil
	}},
	{"file", 1000, newSettingsOf[file.Config], func(_ context.Context, settings any, at site) (router.Destination, error) {
		return file.Open(at.stateDir, *settings.(*file.Config))
	}},
	{"discard", 1000, newSettingsOf[file.DiscardConfig], func(context.Context, any, site) (router.Destination, error) {
		return file.Discard{}, nil
	}},
}

func newSettingsOf[T any]() any { return new(T) }

func openSQL(ctx context.Context, settings any, at site) (router.Destination, error) {
	s, err := sqlstore.Open(ctx, *settings.(*sqlstore.Config), at.name, at.stateDir, at.log)
	if err != nil {
		return nil, err
	}
	return s.Destination(), nil
}

// kindKeys lists the keys for people.
func kindKeys() string {
	var keys []string
	for _, k := range destinationKinds {
		keys = append(keys, k.key)
	}
	return strings.Join(keys, ", ")
}
