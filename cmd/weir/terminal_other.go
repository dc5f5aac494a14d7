//go:build !linux

package main

import "io"

func terminalHeight(io.Writer) int { return 0 }

func terminalSize(io.Writer) (width, height int) { return 0, 0 }
