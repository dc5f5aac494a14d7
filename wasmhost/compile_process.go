package wasmhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// What compiling one module may take. Go's own 6 MB (encoding/json, regexp, text/template) need 90 MiB and 3 seconds.
const (
	compileMemory      = 512 << 20        // bytes, beside those of an idle process
	compileMemoryLeast = 128 << 20        // on small machines
	compileCPUSeconds  = 60               // of all its threads
	compileWait        = 10 * time.Minute // by the clock: it has a low priority
)

// compileLimits are those for this machine: a quarter of its memory, where that is less.
func compileLimits() limits {
	memory := int64(compileMemory)
	if machine := MachineMemory(); machine > 0 {
		memory = max(min(memory, machine/4), compileMemoryLeast)
	}
	return limits{Memory: memory, CPUSeconds: compileCPUSeconds}
}

// compileInChild has a process carry out an order, and tells in words why it could not. Nothing of it is left behind.
func compileInChild(ctx context.Context, command []string, o *compileOrder, module []byte) error {
	o.Limits = compileLimits()
	line, err := json.Marshal(o)
	if err != nil {
		panic("BUG: an order is not JSON: " + err.Error())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, compileWait, errCompileWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"GOTRACEBACK=none"} // and no secrets, beside strangers' modules
	separate(cmd)
	in, err := cmd.StdinPipe() // open as long as we live
	if err != nil {
		return fmt.Errorf("start the compiler: %v", err) // %v: it is no missing module
	}
	var out, words head
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Start(); err != nil {
		in.Close()
		return fmt.Errorf("start the compiler: %v", err) // %v: it is no missing module
	}
	written := make(chan struct{})
	go func() { // it ends when the child does
		defer close(written)
		if _, err := in.Write(append(line, '\n')); err == nil {
			in.Write(module)
		}
	}()
	err = cmd.Wait()
	<-written
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errCompileWait) {
			return errCompileWait
		}
		return fmt.Errorf("compile: interrupted")
	}
	return judge(err, cmd.ProcessState, out.String(), words.String(), o.Limits)
}

var errCompileWait = fmt.Errorf("the compiler was not ready after %v", compileWait)

// judge tells how a child ended.
func judge(err error, state *os.ProcessState, out, words string, l limits) error {
	var a childAnswer
	if json.Unmarshal([]byte(out), &a) == nil && out != "" && err == nil {
		if a.Limit == "" {
			if a.Error == "" {
				return nil
			}
			return errors.New(a.Error)
		}
	}
	words = strings.TrimSpace(words)
	switch {
	case a.Limit == childMemory, saysNoMemory(words):
		return fmt.Errorf("the compiler took more than %d MiB of memory (simplify the largest functions of the module, or split them)", l.Memory>>20)
	case a.Limit == childTime, state != nil && state.UserTime()+state.SystemTime() >= time.Duration(l.CPUSeconds)*time.Second:
		return fmt.Errorf("the compiler took more than %d s of processor time (simplify the largest functions of the module, or split them)", l.CPUSeconds)
	case words == "" && err != nil:
		return fmt.Errorf("the compiler's process died: %w (killed from outside, perhaps for want of memory)", err)
	case words == "":
		return errors.New("the compiler's process gave no answer")
	}
	first, _, _ := strings.Cut(words, "\n")
	return fmt.Errorf("the compiler failed on it: %s", printable(first))
}

// head keeps the first bytes of what is written to it.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	const most = 16 << 10
	h.b = append(h.b, p[:min(len(p), most-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return string(h.b) }

var _ io.Writer = (*head)(nil)
