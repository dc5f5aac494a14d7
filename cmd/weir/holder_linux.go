package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// holder is the process that listens on an address, as far as this process may
// see it: "rsyslogd (pid 812)"; "" when that cannot be told.
func holder(address string) string {
	scheme, at, _ := strings.Cut(address, "://")
	var inodes []string
	switch scheme {
	case "unix":
		return peer(at)
	case "unixgram": // the kernel does not tell
		return ""
	default:
		host, port, err := net.SplitHostPort(at)
		n, numberErr := strconv.Atoi(port)
		if err != nil || numberErr != nil {
			return ""
		}
		state := map[string]string{"tcp": "0A", "udp": "07"}[scheme] // LISTEN, and a socket that is not connected
		end, begins := fmt.Sprintf(":%04X", n), ""
		if ip := net.ParseIP(host).To4(); ip != nil && !ip.IsUnspecified() { // as the kernel prints it
			begins = fmt.Sprintf("%02X%02X%02X%02X", ip[3], ip[2], ip[1], ip[0])
		}
		for _, table := range []string{scheme, scheme + "6"} {
			inodes = append(inodes, sockets(table, func(f []string) string {
				if len(f) <= 9 || !strings.HasSuffix(f[1], end) || f[3] != state {
					return ""
				}
				if ip, _, _ := strings.Cut(f[1], ":"); begins == "" || ip == begins || strings.Trim(ip, "0") == "" {
					return f[9]
				}
				return ""
			})...)
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(link, "socket:["); err != nil || !ok || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		return process(strings.Split(fd, "/")[2])
	}
	return ""
}

func process(pid string) string {
	name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	return fmt.Sprintf("%s (pid %s)", printable(strings.TrimSpace(string(name))), pid)
}

// peer is the process that listens on a unix socket.
func peer(path string) (who string) {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return ""
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && cred.Pid > 0 {
			who = process(strconv.Itoa(int(cred.Pid)))
		}
	})
	return who
}

// sockets are the inodes of the sockets in a table of /proc/net that pick wants.
func sockets(table string, pick func(fields []string) string) (inodes []string) {
	text, _ := os.ReadFile("/proc/net/" + table)
	for line := range strings.Lines(string(text)) {
		if inode := pick(strings.Fields(line)); inode != "" {
			inodes = append(inodes, inode)
		}
	}
	return inodes
}
