package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a kill costs a stream whose sender hears of nothing: what weir had read and nobody had made durable, and what
// still was in the kernel. The figures are in docs/guarantees.md; the test is that none of it is there twice, and that
// nothing is lost but the end of a connection.
func TestAKillCostsAStreamTheEndOfItsConnection(t *testing.T) {
	for _, buffer := range []string{"{disk: 64MiB, sync: batch}", "{disk: 64MiB, sync: 5s}", ""} {
		for _, pace := range []time.Duration{time.Millisecond, 0} {
			streamCost(t, buffer, pace, kills(1, 4))
		}
	}
}

const costLine = 200 // bytes

func streamCost(t *testing.T, buffer string, pace time.Duration, kills int) {
	rng, _ := crashRandom(t)
	r := newCrashRig(t, rng, newLiteCrash(t))
	r.buffer, r.flush = buffer, "flush_lines: 1000\n    flush_timeout: 1s"
	var next int // number of the next message
	type life struct{ first, last, written, unread int }
	var lives []life
	for range kills {
		r.start()
		r.awaitReady()
		c, err := net.Dial("unix", r.plain())
		if err != nil {
			t.Fatal(err)
		}
		l := life{first: next}
		var written atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				line := fmt.Sprintf("<14>1 - host c - - - c %d fine ", next)
				line += strings.Repeat("x", costLine-1-len(line)) + "\n"
				n, err := c.Write([]byte(line))
				written.Add(int64(n))
				if err != nil {
					return
				}
				next++
				if pace > 0 {
					time.Sleep(pace)
				}
			}
		}()
		time.Sleep(1500*time.Millisecond + time.Duration(rng.IntN(2000))*time.Millisecond)
		r.child.Process.Signal(syscall.SIGSTOP)
		pid := r.child.Process.Pid // it runs on until the kernel has noticed
		within(t, time.Minute, func() bool { return stands(pid) }, func() string { return "weir does not stand still" })
		l.unread = unread(t, pid, r.plain())
		before := int(written.Load())
		r.kill()
		<-ended
		c.Close()
		l.written, l.last = int(written.Load()), next
		l.unread += l.written - before // between the look and the kill
		next++                         // what was torn is none
		lives = append(lives, l)
	}
	r.start()
	r.awaitReady()
	for r.stop()["kept"] > 0 {
		r.start()
		r.awaitReady()
	}
	rows := map[int]int{}
	for _, m := range r.database.messages(t) {
		var n int
		fmt.Sscanf(m, "c %d ", &n)
		rows[n]++
	}
	var read, kernel []int
	for _, l := range lives {
		stored, end := 0, l.first
		for n := l.first; n <= l.last; n++ {
			if rows[n] > 1 {
				t.Errorf("message %d is stored %d times", n, rows[n])
			}
			if rows[n] > 0 {
				stored++
				end = n + 1
			}
		}
		if stored != end-l.first {
			t.Errorf("of messages %d to %d only %d are stored: not only the end is lost", l.first, end-1, stored)
		}
		read = append(read, max(0, l.written-stored*costLine-l.unread))
		kernel = append(kernel, l.unread)
	}
	slices.Sort(read)
	slices.Sort(kernel)
	load := "1000 messages a second"
	if pace == 0 {
		load = "as many as weir takes"
	}
	t.Logf("buffer %q, %s of %d bytes: of %d kills, bytes that were read and lost: median %d, most %d; unread in the kernel: median %d, most %d; %d messages sent",
		buffer, load, costLine, len(lives), read[len(read)/2], read[len(read)-1], kernel[len(kernel)/2], kernel[len(kernel)-1], next)
}

// stands reports whether a signal has stopped all threads of a process; see proc_pid_stat(5).
func stands(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if behind := bytes.LastIndexByte(stat, ')'); err != nil || !bytes.HasPrefix(stat[behind+1:], []byte(" T ")) {
			return false
		}
	}
	return len(threads) > 0
}

// unread is how many bytes wait in the sockets that a process has accepted at a path. The process is its parent's to look into.
func unread(t *testing.T, pid int, path string) (sum int) {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Skip("this kernel does not let a parent look at its child's sockets:", err)
	}
	defer unix.Close(process)
	files, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	for _, f := range files {
		n, _ := strconv.Atoi(f.Name())
		if link, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "fd", f.Name())); !strings.HasPrefix(link, "socket:") {
			continue
		}
		fd, err := unix.PidfdGetfd(process, n, 0)
		if err != nil {
			t.Skip("this kernel does not let a parent look at its child's sockets:", err)
		}
		own, err := unix.Getsockname(fd)
		u, ok := own.(*unix.SockaddrUnix)
		if _, peer := unix.Getpeername(fd); err == nil && ok && peer == nil && filepath.Base(u.Name) == filepath.Base(path) {
			waiting, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
			if err != nil {
				t.Error(err)
			}
			sum += waiting
		}
		unix.Close(fd)
	}
	return sum
}
