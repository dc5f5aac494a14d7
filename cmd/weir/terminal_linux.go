package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize is how many columns and lines the terminal has; 0: not known.
func terminalSize(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}
