package spool

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// Somebody removes the segments and leaves the file that says how far they were acknowledged: it may not speak for new ones.
func TestNewSegmentsAreNotTakenForAcknowledgedOnes(t *testing.T) {
	d := newMemDisk()
	s, err := open(d, Config{Size: 1 << 20, segment: 8 << 10}, silent)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := s.Append(texts(numbered(i, 10, 1000)...), router.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Ack(s.Run(), 50)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name := range d.names {
		if strings.HasSuffix(name, ".seg") {
			delete(d.names, name)
		}
	}
	s = reopen(t, d)
	if _, err := s.Append(texts("a"), router.Mark{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, d)
	got, _ := drain(t, s)
	wantTexts(t, got, "a")
}
