package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/router/routertest"
)

// A page of the manual is typed from its first block to its last, in a folder of its own, in two terminals. What stands
// behind the language of a fence, which readers do not see, says in which of them and how:
//
//	```sh               in the second terminal; it has to end well
//	```console          "$ COMMAND" in the second terminal, and what it prints. It is repeated until it prints that
//	```sh background    in the first terminal, where it goes on. The second one waits until weir runs
//	```text stop        Ctrl-C in the first terminal, which then prints this
//	```yaml             when the first line is "# FILE.yaml": is saved under that name
//
// "needs PROGRAM" leaves a block out where that program is not installed. In what is printed "…" stands for the rest of a word or line, a line "…" for any lines; times are equal to each other.
// Blocks in other languages are to read.
type page struct {
	name  string
	dir   string
	env   []string
	first *terminal // nil: nothing runs there
}

// A terminal is a command that goes on beside the others.
type terminal struct {
	cmd    *exec.Cmd
	ended  chan error
	screen routertest.Transcript
}

var fence = regexp.MustCompile("(?ms)^```([a-z]+) ?([^\n]*)\n(.*?)^```$")

// newPage is an empty folder with two terminals.
func newPage(t *testing.T, name string) *page {
	t.Helper()
	p := &page{name: name, dir: t.TempDir(), env: append(shellEnv(t), "TZ=UTC")}
	t.Cleanup(func() {
		if p.first != nil {
			p.first.cmd.Process.Kill()
			<-p.first.ended
		}
	})
	return p
}

// typePage does what a page of the manual says.
func typePage(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, filepath.Base(path))
	for _, room := range []string{"filters", "examples", "deploy"} { // commands name files in them
		root, err := filepath.Abs("../..")
		if err == nil {
			err = os.Symlink(filepath.Join(root, room), filepath.Join(p.dir, room))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range fence.FindAllSubmatch(text, -1) {
		block := string(m[3])
		how, program, _ := strings.Cut(string(m[2]), " ")
		if how == "needs" {
			if _, err := exec.LookPath(program); err != nil {
				t.Logf("%s is not installed: make deps", program)
				continue
			}
			how = ""
		}
		switch string(m[1]) + " " + how {
		case "sh ":
			p.command(t, block)
		case "sh background":
			p.background(t, block)
		case "text stop":
			p.stop(t, block)
		case "console ":
			p.session(t, block)
		case "yaml ":
			if m := titled.FindStringSubmatch(block); m != nil {
				if err := os.WriteFile(filepath.Join(p.dir, m[1]), []byte(block), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		default:
			if how != "" {
				t.Fatalf("%s: what is ```%s %s?", p.name, m[1], m[2])
			}
		}
	}
}

// shellEnv is an environment in which weir is the program under test.
func shellEnv(t *testing.T) []string {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "weir")); err != nil { // TestMain knows the name
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
}

// typed is a command as the test gives it to a shell. The whole suite is not started from within itself.
func typed(command string) string {
	return strings.NewReplacer("go run ./cmd/weir", "weir", "go build ./cmd/weir", ":", "make test\n", "").Replace(command)
}

func (p *page) shell(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

func (p *page) command(t *testing.T, block string) {
	t.Helper()
	out, err := p.shell(typed(block)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s says to type\n%s%v\n%s\nin the first terminal:\n%s", p.name, block, err, out, p.shown())
	}
}

// shown is what the first terminal shows.
func (p *page) shown() string {
	if p.first == nil {
		return ""
	}
	return p.first.screen.String()
}

func (p *page) background(t *testing.T, block string) {
	t.Helper()
	if p.first != nil {
		t.Fatalf("%s: something runs in the first terminal already", p.name)
	}
	f := &terminal{cmd: p.shell("exec " + typed(block)), ended: make(chan error, 1)}
	f.cmd.Stdout, f.cmd.Stderr = &f.screen, &f.screen
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- f.cmd.Wait() }()
	p.first = f
	within(t, time.Minute, func() bool {
		return len(f.ended) > 0 || strings.Contains(f.screen.String(), `"msg":"weir runs"`)
	}, p.shown)
	if len(f.ended) > 0 {
		t.Fatalf("%s says to run\n%sand it ended\n%s", p.name, block, p.shown())
	}
}

func (p *page) stop(t *testing.T, want string) {
	t.Helper()
	if p.first == nil {
		t.Fatalf("%s: nothing runs in the first terminal", p.name)
	}
	seen := len(p.first.screen.String())
	p.first.cmd.Process.Signal(syscall.SIGINT)
	if err := <-p.first.ended; err != nil {
		t.Errorf("%s: Ctrl-C ends with %v", p.name, err)
	}
	got := ""
	for line := range strings.Lines(p.shown()[seen:]) {
		if !strings.HasPrefix(line, "{") { // the log, which is text on a terminal
			got += line
		}
	}
	p.first = nil
	if !like(want).MatchString(calm(got)) {
		t.Errorf("%s: after Ctrl-C it printed\n%s\nthe page has\n%s", p.name, got, want)
	}
}

// session types what stands behind "$ ". What a page shows is what came out in the end: rows take a moment to arrive.
func (p *page) session(t *testing.T, block string) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+block, "\n$ ") {
		command, want, _ := strings.Cut(part, "\n")
		if command == "" {
			continue
		}
		var got string
		within(t, 30*time.Second, func() bool {
			out, err := p.shell(typed(command)).CombinedOutput()
			if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
				t.Fatal(err)
			}
			got = string(out)
			return like(strings.TrimSuffix(want, "\n") + "\n").MatchString(calm(strings.TrimSuffix(got, "\n") + "\n"))
		}, func() string {
			return p.name + ": $ " + command + " printed\n" + got + "\nthe page has\n" + want + "\nin the first terminal:\n" + p.shown()
		})
	}
}

var clockTime = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(\.\d+)?Z?`)

// calm makes all times the same.
func calm(text string) string { return clockTime.ReplaceAllString(text, "00:00:00") }

// like is what a page shows, as an expression.
func like(shown string) *regexp.Regexp {
	expr := "^"
	for line := range strings.Lines(calm(shown)) {
		if line == "…\n" {
			expr += `(?:.*\n)*`
			continue
		}
		expr += strings.ReplaceAll(regexp.QuoteMeta(line), "…", `.*`)
	}
	return regexp.MustCompile(expr + "$")
}

// A page cannot be typed where what it says is not so.
func TestWhatAPageShowsIsCompared(t *testing.T) {
	check := func(shown, printed string, want bool) {
		t.Helper()
		if like(shown).MatchString(calm(printed)) != want {
			t.Errorf("%q and %q", shown, printed)
		}
	}
	check("a\n", "a\n", true)
	check("a\n", "a\nb\n", false)
	check("a\n…\n", "a\nb\nc\n", true)
	check("pid …, fine\n", "pid 12, fine\n", true)
	check("pid …, fine\n", "pid 12, bad\n", false)
	check("a …\n", "a b\nc\n", false)
	check("2026-11-30 10:00:00 a\n", "2027-01-02 11:12:13 a\n", true)
	check("2026-11-30T10:00:00Z a\n", "2027-01-02T11:12:13.123456Z a\n", true)
	check("at 10:00:00 a\n", "at noon a\n", false)
	check("1 + 1 = 2.\n", "1 + 1 = 2,\n", false)
}
