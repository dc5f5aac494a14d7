package wasmhost

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// set bounds this process: its memory, its processor time, and its place behind all others. expired is called when the
// time is up; the process is killed a second later.
//
// The memory is bounded by what it has now and Memory more. Private writable mappings count, touched or not: an idle Go
// process has a hundred megabytes of them. (Under a limit of the whole address space Go does not even start.)
func (l limits) set(expired func()) error {
	up := make(chan os.Signal, 1)
	signal.Notify(up, unix.SIGXCPU)
	go func() {
		<-up
		expired()
	}()
	data := uint64(l.Memory) + mapped()
	for _, r := range []struct {
		what      int
		soft, max uint64
	}{
		{unix.RLIMIT_DATA, data, data},
		{unix.RLIMIT_CPU, l.CPUSeconds, l.CPUSeconds + 1},
		{unix.RLIMIT_CORE, 0, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(r.what, &now); err != nil {
			return err
		}
		r.max = min(r.max, now.Max)
		if err := unix.Setrlimit(r.what, &unix.Rlimit{Cur: min(r.soft, r.max), Max: r.max}); err != nil {
			return err
		}
	}
	// What cannot be had of the rest changes no result.
	threads, _ := filepath.Glob("/proc/self/task/*") // priorities are those of threads; new ones inherit them
	for _, t := range threads {
		if id, err := strconv.Atoi(filepath.Base(t)); err == nil {
			unix.Setpriority(unix.PRIO_PROCESS, id, compileNice)
		}
	}
	os.WriteFile("/proc/self/comm", []byte("weir-compile"), 0)
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // when the machine is out of memory: the compiler, not the router
	return nil
}

// compileNice leaves the compiler a tenth of a core that others want too.
const compileNice = 10

// mapped is how many bytes of private writable memory this process has.
func mapped() uint64 {
	const idle = 160 << 20
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return idle
	}
	var pages [6]uint64
	if n, _ := fmt.Sscan(string(b), &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5]); n < 6 {
		return idle
	}
	return pages[5] * uint64(os.Getpagesize())
}

// MachineMemory is what this machine, or the container that weir runs in, has, in bytes; 0 when that is unknown.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	memory := int64(info.Totalram) * int64(info.Unit)
	groups, _ := os.ReadFile("/proc/self/cgroup")
	_, group, _ := strings.Cut(string(groups), "0::")
	group, _, _ = strings.Cut(group, "\n")
	// Above the process's own group there may be tighter ones.
	for ; group != "" && group != "."; group = filepath.Dir(group) {
		b, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", group, "memory.max"))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			memory = min(memory, n)
		}
		if group == "/" {
			break
		}
	}
	return memory
}

// separate keeps the signals of a terminal from the child.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
