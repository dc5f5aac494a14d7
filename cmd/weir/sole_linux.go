package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeSole makes this process the only weir of a state directory, until it closes the file or ends. Where the file system cannot
// lock a directory (NFS), nothing keeps a second one away, and there is no file.
func takeSole(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		defer dir.Close()
		if who := locker(dir); who != "" {
			return nil, fmt.Errorf("%w: %s", errShared, who)
		}
		return nil, errShared
	case err != nil:
		return nil, dir.Close()
	}
	return dir, nil
}

// locker is the process that has locked a file, as far as this process may see it.
func locker(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	st := info.Sys().(*syscall.Stat_t)
	at := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	table, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// 1: FLOCK ADVISORY WRITE 812 08:02:131 0 EOF
		if f := strings.Fields(lines.Text()); len(f) > 5 && f[1] == "FLOCK" && f[5] == at && f[4] != "0" && f[4] != "-1" {
			return process(f[4])
		}
	}
	return ""
}
