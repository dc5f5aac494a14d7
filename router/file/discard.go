package file

import (
	"context"

	"github.com/weirlog/weir/router"
)

// A DiscardConfig is a destination `discard: {}` of the configuration file.
type DiscardConfig struct {
	Discard struct{} `yaml:"discard"`
}

// A Discard takes everything and keeps nothing, for measuring what lies before it.
type Discard struct{}

// Write forgets msgs.
func (Discard) Write(context.Context, []*router.Message, func([]router.Rejected) error) error {
	return nil
}

// Close does nothing.
func (Discard) Close() error { return nil }
