//go:build !linux

package main

import "os"

// takeSole does nothing here: nothing keeps a second weir off a state directory.
func takeSole(string) (*os.File, error) { return nil, nil }
