//go:build !linux

package main

import "errors"

// A sole is nothing here: nothing keeps a second weir off a state directory.
type sole struct{}

var errShared = errors.New("another weir uses it")

func takeSole(string) (*sole, error) { return nil, nil }

func (s *sole) release() error { return nil }
