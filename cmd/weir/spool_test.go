package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/spool"
)

// fillSpool puts messages into the disk buffer of a destination, acknowledges some, and leaves it open.
func fillSpool(t *testing.T, stateDir, destination string, messages, acknowledged int) *spool.Spool {
	t.Helper()
	s, err := spool.Open(filepath.Join(bufferDir(stateDir), destination, "1.0"), spool.Config{Size: spool.MinSize}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		m := &router.Message{Origin: &router.Origin{Source: "in"}, Received: int64(1767225600e9)}
		m.Text = fmt.Appendf(nil, "message %d", i)
		if _, err := s.Append([]*router.Message{m}, router.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Ack(s.Run(), uint64(acknowledged))
	return s
}

func weirSays(args ...string) (code int, out, errout string) {
	var o, e bytes.Buffer
	code = execute(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// A relative state_dir is beside the configuration, wherever the command is given.
func TestSpoolFindsTheStateDirectoryOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	fillSpool(t, filepath.Join(dir, "state"), "central", 5, 0).Close()
	path := filepath.Join(dir, "weir.yaml")
	text := "state_dir: state\nsources: { in: { listen: [unix://in.sock] } }\ndestinations: { central: { discard: {} } }\nroutes: { main: { from: [in], to: [central] } }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errout := weirSays("spool", "ls", "-c", path); code != exitFine || !strings.Contains(out, `"central"`) {
		t.Errorf("exit code %d, %s%s", code, out, errout)
	}
}

func TestSpoolShowsBuffersBesideARunningWeir(t *testing.T) {
	dir := t.TempDir()
	s := fillSpool(t, dir, "central", 5, 0)
	defer s.Close()
	fillSpool(t, dir, "archive", 7, 3).Close()
	code, out, _ := weirSays("spool", "ls", "--state-dir", dir, "--format", "text")
	want := []string{`DESTINATION +CONNECTION +MESSAGES`, `archive +1.0 +4 `, `2026-01-01T00:00:00Z`, ` 1 +7 +3\n`, `central +1.0 +5 `, s.Run().String() + ` +1 +5 +0`}
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(out) {
			t.Errorf("%q is not in\n%s", w, out)
		}
	}
	if code != exitFine {
		t.Error(code)
	}
	if _, out, _ = weirSays("spool", "ls", "archive", "--state-dir", dir); !strings.Contains(out, `"acknowledged":3`) || strings.Contains(out, "central") {
		t.Error(out)
	}
	if code, _, errout := weirSays("spool", "ls", "nobody", "--state-dir", dir); code != exitFailed || !strings.Contains(errout, "no disk buffer of a destination nobody") {
		t.Error(code, errout)
	}
	if code, _, errout := weirSays("spool", "ls", "--state-dir", t.TempDir()); code != exitFine || !strings.Contains(errout, "no disk buffers in") {
		t.Error(code, errout)
	}
	if code, _, _ := weirSays("spool", "ls", "--state-dir", filepath.Join(dir, "nothing")); code != exitFailed {
		t.Error(code)
	}
}

func TestSpoolVerifyTellsThePlaceOfDamage(t *testing.T) {
	dir := t.TempDir()
	fillSpool(t, dir, "central", 20, 0).Close()
	if code, out, errout := weirSays("spool", "verify", "--state-dir", dir); code != exitFine || !strings.Contains(out, "20 messages in 1 segments, 0 places damaged, 0 messages missing\n") {
		t.Error(code, out, errout)
	}
	files, _ := filepath.Glob(filepath.Join(bufferDir(dir), "central", "1.0", "*.seg"))
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, _ := io.ReadAll(f)
	at := bytes.Index(data, []byte("message 7"))
	f.WriteAt([]byte("x"), int64(at))
	code, out, errout := weirSays("spool", "verify", "central", "--state-dir", dir)
	if code != exitFailed || !strings.Contains(errout, "1 places are damaged") || !strings.Contains(out, "19 messages in 1 segments, 1 places damaged, 1 messages missing\n") {
		t.Error(code, out, errout)
	}
	var offset, size int
	if _, err := fmt.Sscanf(strings.TrimPrefix(out, files[0]), ": %d bytes from offset %d on", &size, &offset); err != nil || offset > at || offset+size < at {
		t.Errorf("%v: damaged at %d: %s", err, at, out)
	}
}
