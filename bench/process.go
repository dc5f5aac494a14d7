package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is a program that we started and will end.
type process struct {
	cmd  *exec.Cmd
	log  string // path of what it wrote
	done chan struct{}
	err  error // valid when done is closed
}

// start runs a program in dir; what it writes goes to a file there.
func start(dir, name string, args ...string) (*process, error) {
	f, err := os.CreateTemp(dir, filepath.Base(name)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &process{log: f.Name(), done: make(chan struct{}), cmd: exec.Command(name, args...)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, f, f
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop asks the process to end and, after a minute, ends it.
func (p *process) stop(sig os.Signal) error {
	p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within a minute; killed", filepath.Base(p.cmd.Path))
	}
	return p.err
}

// tail is the end of what the process wrote, for error messages.
func (p *process) tail() string {
	b, _ := os.ReadFile(p.log)
	return string(b[max(0, len(b)-2000):])
}

// untilListening waits until something listens on a unix socket.
func (p *process) untilListening(ctx context.Context, path string) error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if c, err := net.Dial("unix", path); err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s: %w\n%s", filepath.Base(p.cmd.Path), errNotRun, p.tail())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen on %s\n%s", filepath.Base(p.cmd.Path), path, p.tail())
}

// cpu is the processor time that the process has used.
func (p *process) cpu() float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	return ticks(string(b), 11, 12)
}

// peak is the most memory that the process has had resident, in MiB.
func (p *process) peak() float64 { return p.status("VmHWM") }

func (p *process) status(key string) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key+":" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// ticks adds up fields of a /proc stat line, counted behind the command's name
// (which may contain anything), in seconds. The kernel tells time in 1/100 s.
func ticks(stat string, fields ...int) float64 {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	sum := 0.0
	for _, i := range fields {
		if i < len(f) {
			v, _ := strconv.ParseFloat(f[i], 64)
			sum += v / 100
		}
	}
	return sum
}

// foreign measures how many cores others were using meanwhile: figures with
// more than a tenth of a core of it are not to be trusted.
func foreign() func() float64 {
	all := func() float64 {
		b, _ := os.ReadFile("/proc/stat")
		line, _, _ := strings.Cut(string(b), "\n")
		return ticks(")"+strings.TrimPrefix(line, "cpu"), 0, 1, 2, 5, 6, 7)
	}
	all0, ours0, start := all(), family(), time.Now()
	return func() float64 {
		return max(0, (all()-all0)-(family()-ours0)) / time.Since(start).Seconds()
	}
}

// family is the processor time of ourselves and everything that we started.
func family() float64 {
	children, sum := map[int][]int{}, map[int]float64{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], pid)
		sum[pid] = ticks(string(b), 11, 12, 13, 14)
	}
	total := 0.0
	for todo := []int{os.Getpid()}; len(todo) > 0; {
		pid := todo[0]
		todo = append(todo[1:], children[pid]...)
		total += sum[pid]
	}
	return total
}

// loggen starts a sender of 256-byte messages, in RFC 3164 form since that is
// what every router reads.
func (l *lab) loggen(dir, socket string, args ...string) (*process, error) {
	return start(dir, l.weir, append([]string{"loggen", "--unix", socket, "--format", "rfc3164"}, args...)...)
}

var counted = regexp.MustCompile(`count=(\d+)`)

// sent waits for the end of a loggen and returns how many messages it sent.
func (p *process) sent(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stop(syscall.SIGTERM)
		return 0, ctx.Err()
	}
	m := counted.FindStringSubmatch(p.tail())
	if p.err != nil || m == nil {
		return 0, fmt.Errorf("loggen failed (%v)\n%s", p.err, p.tail())
	}
	return strconv.Atoi(m[1])
}
