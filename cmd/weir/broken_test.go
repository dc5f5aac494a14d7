//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// A brokenCase is a configuration that is wrong, or worth a warning, and what is said of it.
//
//	-- NAME/weir.yaml --     and whatever other files there are; → is a tab
//	-- NAME/setup --         what is around it, a line each: see brokenSetups
//	-- NAME/command --       default: check
//	-- NAME/want --          standard error, and the exit code when that is not 0
type brokenCase struct {
	name    string
	files   []txtar.File
	setup   []string
	command []string
	want    string
}

// brokenSecret is the password of every case. It is never shown.
const brokenSecret = "hunter2"

// TestBrokenFilesAreToldForPeople runs the command of every case and compares
// what it says to the letter. Cases are written anew, to be read by eye, with
// go test -run Broken -update.
func TestBrokenFilesAreToldForPeople(t *testing.T) {
	seen := map[string]string{}
	for _, topic := range brokenTopics(t) {
		for _, c := range topic.cases {
			if other, twice := seen[c.name]; twice {
				t.Errorf("case %s is in %s and in %s", c.name, other, topic.name)
			}
			seen[c.name] = topic.name
		}
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.cases {
				t.Run(c.name, func(t *testing.T) {
					got := c.run(t)
					if strings.Contains(got, brokenSecret) {
						t.Errorf("the secret is shown:\n%s", got)
					}
					if *update {
						c.keep(topic.archive, got)
					} else if got != c.want {
						t.Errorf("(-want +got)\n%s", cmp.Diff(c.want, got))
					}
				})
			}
			if *update {
				if err := os.WriteFile(topic.path, txtar.Format(topic.archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if len(seen) < 350 {
		t.Errorf("%d cases", len(seen))
	}
}

// A brokenTopic is a file of cases.
type brokenTopic struct {
	name, path string
	archive    *txtar.Archive
	cases      []*brokenCase
}

// brokenTopics reads all files of cases.
func brokenTopics(t *testing.T) (all []brokenTopic) {
	t.Helper()
	paths, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		all = append(all, brokenTopic{name, path, a, brokenCases(t, name, a)})
	}
	return all
}

// brokenCases reads the cases of one file.
func brokenCases(t *testing.T, topic string, a *txtar.Archive) (all []*brokenCase) {
	t.Helper()
	for _, f := range a.Files {
		name, file, ok := strings.Cut(f.Name, "/")
		if !ok {
			t.Fatalf("%s: %s is no CASE/FILE", topic, f.Name)
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &brokenCase{name: name, command: []string{"check"}})
		}
		c := all[len(all)-1]
		switch text := string(f.Data); file {
		case "setup":
			c.setup = strings.Split(strings.TrimSpace(text), "\n")
		case "command":
			c.command = strings.Fields(text)
		case "want":
			c.want = text
		default:
			c.files = append(c.files, txtar.File{Name: file, Data: f.Data})
		}
	}
	return all
}

// keep makes got what is wanted.
func (c *brokenCase) keep(a *txtar.Archive, got string) {
	last := 0
	for i, f := range a.Files {
		if name, file, _ := strings.Cut(f.Name, "/"); name == c.name {
			if last = i; file == "want" {
				a.Files[i].Data = []byte(got)
				return
			}
		}
	}
	rest := append([]txtar.File{{Name: c.name + "/want", Data: []byte(got)}}, a.Files[last+1:]...)
	a.Files = append(a.Files[:last+1:last+1], rest...)
}

// run puts the case into a directory of its own, runs its command there and
// returns what was said, without what differs from machine to machine.
func (c *brokenCase) run(t *testing.T) string {
	t.Helper()
	t.Setenv("WEIR_SECRET", brokenSecret)
	dir := t.TempDir()
	t.Chdir(dir)
	for _, f := range c.files {
		text := strings.ReplaceAll(string(f.Data), "→", "\t")
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	around := surroundings{t: t, says: []string{dir, "$DIR"}}
	for _, line := range c.setup {
		word, args, _ := strings.Cut(line, " ")
		do := brokenSetups[word]
		if do == nil {
			t.Fatalf("no setup %s", word)
		}
		do(&around, args)
	}
	var out, errout bytes.Buffer
	// A command that starts in spite of all is ended like any weir.
	ends := time.AfterFunc(time.Minute, func() { syscall.Kill(os.Getpid(), syscall.SIGTERM) })
	defer ends.Stop()
	code := around.execute(c.command, &out, &errout)
	got := errout.String()
	if code == exitFine && c.command[0] == "check" && !strings.HasSuffix(out.String(), ": fine\n") {
		t.Errorf("the exit code is 0, and standard output is\n%s", out.String())
	}
	if code == exitFine != (strings.Count(got, "\nweir: ")+strings.Count("\n"+got, "\nweir: ") == 0) {
		t.Errorf("exit code %d with\n%s", code, got)
	}
	for _, line := range variable {
		got = line.ReplaceAllString(got, "$1…")
	}
	got = strings.NewReplacer(around.says...).Replace(got)
	if code != exitFine && code != exitUsage {
		got += fmt.Sprintf("exit code %d\n", code)
	}
	return strings.ReplaceAll(got, "\t", "→")
}

// variable is what is different each time, behind its first group.
var variable = []*regexp.Regexp{
	regexp.MustCompile(`("time":)"[^"]*"`),
	regexp.MustCompile(`(pid )\d+`),
	regexp.MustCompile(`(this machine has )[\d.]+`),
	regexp.MustCompile(`(asks for: it has )[0-9a-f]{64}`),
}
