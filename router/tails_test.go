package router

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOldestUnfinishedMessageGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewTails(100)
		var evicted []string
		open := func(name string, bytes int) *Tail {
			time.Sleep(time.Second)
			o := a.Open(func() { evicted = append(evicted, name) })
			if !o.Resize(0, bytes) {
				t.Fatalf("%s gets no %d bytes", name, bytes)
			}
			o.Unfinished(true)
			return o
		}
		first, second := open("first", 40), open("second", 40)
		time.Sleep(time.Second)
		first.Unfinished(false) // and begins another one
		first.Unfinished(true)
		third := open("third", 50)
		if len(evicted) != 1 || evicted[0] != "second" || !second.Evicted() || first.Evicted() {
			t.Errorf("evicted %v", evicted)
		}
		if second.Resize(40, 41) || a.Used() != 90 {
			t.Errorf("the evicted one grows, %d bytes used", a.Used())
		}
		second.Close()
		third.Unfinished(true)
		if !third.Resize(50, 100) || !first.Evicted() {
			t.Error("the oldest stays")
		}
		if third.Resize(100, 101) || !third.Evicted() {
			t.Error("one that needs all of it and more is not closed")
		}
		third.Close()
		first.Close()
		if a.Used() != 0 {
			t.Errorf("%d bytes are left", a.Used())
		}
	})
}
