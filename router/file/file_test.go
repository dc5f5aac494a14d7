package file_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/file"
	"github.com/weirlog/weir/router/routertest"
)

// texts reads the messages out of record JSON lines.
func texts(t *testing.T, data []byte) []string {
	t.Helper()
	var out []string
	for line := range bytes.Lines(data) {
		var record struct{ Message string }
		if err := json.Unmarshal(line, &record); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		out = append(out, record.Message)
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(t *testing.T, path string) *file.File {
	t.Helper()
	f, err := file.Open("/nowhere", file.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileIsADestination(t *testing.T) {
	routertest.Destination(t, func(t *testing.T) (router.Destination, func() []string) {
		dir := t.TempDir()
		f, err := file.Open(dir, file.Config{File: "sub/messages.jsonl"})
		if err != nil {
			t.Fatal(err)
		}
		return f, func() []string { return texts(t, read(t, filepath.Join(dir, "sub/messages.jsonl"))) }
	})
}

func TestStdoutIsADestination(t *testing.T) {
	routertest.Destination(t, func(t *testing.T) (router.Destination, func() []string) {
		var out bytes.Buffer
		return &file.Stdout{W: &out}, func() []string { return texts(t, out.Bytes()) }
	})
}

func TestDiscardTakesEverything(t *testing.T) {
	msgs, _ := routertest.Messages("gone", 3)
	if err := (file.Discard{}).Write(t.Context(), msgs, nil); err != nil {
		t.Error(err)
	}
}

func TestTornLastLineIsEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	os.WriteFile(path, []byte("{\"message\":\"whole\"}\n{\"mess"), 0o600)
	f := open(t, path)
	defer f.Close()
	msgs, want := routertest.Messages("next", 1)
	if err := f.Write(t.Context(), msgs, nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(read(t, path)), "\n")
	if len(lines) != 4 || lines[1] != "{\"mess\n" || texts(t, []byte(lines[2]))[0] != want[0] {
		t.Errorf("got %q", lines)
	}
}

func TestRotatedFileIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, path)
	defer f.Close()
	write := func(name string) []string {
		msgs, want := routertest.Messages(name, 2)
		if err := f.Write(t.Context(), msgs, nil); err != nil {
			t.Fatal(err)
		}
		return want
	}
	before := write("before")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	after := write("after")
	if diff := cmp.Diff(append(before, after...), append(texts(t, read(t, path+".1")), texts(t, read(t, path))...)); diff != "" {
		t.Error(diff)
	}
}

func TestLinesOutgrowThePieceTheyAreWrittenIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, path)
	defer f.Close()
	msgs, _ := routertest.Messages("long", 40)
	for _, m := range msgs {
		m.Text = bytes.Repeat([]byte("x"), 20000)
	}
	msgs[7].Text = bytes.Repeat([]byte("y"), 1<<20)
	if err := f.Write(t.Context(), msgs, nil); err != nil {
		t.Fatal(err)
	}
	got := texts(t, read(t, path))
	for i, m := range msgs {
		if got[i] != string(m.Text) {
			t.Errorf("line %d differs", i)
		}
	}
}

func TestFullDiskNeedsTheOperator(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	f := open(t, "/dev/full")
	defer f.Close()
	msgs, _ := routertest.Messages("full", 1)
	if err := f.Write(t.Context(), msgs, nil); !router.IsNeedsOperator(err) {
		t.Errorf("got %v", err)
	}
}

func TestUnwritableFileIsAnErrorAtStart(t *testing.T) {
	if _, err := file.Open(t.TempDir(), file.Config{File: "."}); err == nil {
		t.Error("a directory was opened")
	}
}
