package router

import (
	"bytes"
	"testing"
)

// newBatch returns a batch that holds as much as its source may ask for.
func newBatch(bytes, messages int) *Batch {
	r := &Router{budget: newBudget(64 << 20), metrics: newMetrics()}
	in := &inlet{router: r, claims: memoryClaim, limits: Limits{Bytes: 1 << 20, Messages: 1024}}
	b, err := in.Take(nil, bytes, messages)
	if err != nil {
		panic(err)
	}
	return b
}

func TestABatchOfOneSmallMessageIsSmall(t *testing.T) {
	b := newBatch(256, 1)
	b.Add(&Origin{}).Raw = b.Copy(make([]byte, 256))
	if b.shrink(); b.hold.size > 3<<10 {
		t.Errorf("it holds %d bytes", b.hold.size)
	}
}

func TestABatchGivesBackAllThatItHeld(t *testing.T) {
	b := newBatch(64<<10, 1024)
	for range 1024 {
		m := b.Add(&Origin{})
		m.Text = b.Copy([]byte("some text"))
		m.Structured = b.NewElements(2)
		m.Fields = b.NewFields(3)
	}
	if b.Add(&Origin{}) != nil || !b.Full() {
		t.Error("it takes more messages than its limit")
	}
	g := b.hold.budget
	if b.free(); g.pools[0].used != 0 {
		t.Errorf("%d bytes are not given back", g.pools[0].used)
	}
}

func TestBytesOfABatchDoNotOverlap(t *testing.T) {
	b := newBatch(1000, 1)
	var all [][]byte
	for i := range 500 {
		d := b.Bytes(i * 7 % 1500)
		for k := range d {
			d[k] = byte(i)
		}
		all = append(all, d)
	}
	for i, d := range all {
		if len(d) != i*7%1500 || len(bytes.Trim(d, string([]byte{byte(i)}))) > 0 && i < 128 {
			t.Fatalf("piece %d was overwritten", i)
		}
		if cap(d) != len(d) {
			t.Fatalf("piece %d has room behind it: an append would write into its neighbour", i)
		}
	}
}

func TestADeliveredBatchDoesNotGrowBeyondTheBudget(t *testing.T) {
	b := newBatch(1000, 1)
	b.hold.budget.pools[0].limit = 100 << 10
	b.Copy(make([]byte, 200<<10)) // its source overdraws
	b.route = &route{}
	if b.Bytes(64<<10) != nil {
		t.Error("a filter got memory that is not there")
	}
	b.hold.budget.pools[0].limit = 64 << 20
	if b.Bytes(64<<10) == nil {
		t.Error("a filter did not get memory that is there")
	}
}

func TestTakingBackAMessageLeavesTheOthers(t *testing.T) {
	b := newBatch(100, 10)
	for i := range 6 {
		b.Add(&Origin{}).ProcID = []byte{byte('a' + i)}
	}
	b.Unadd()
	b.Unadd()
	b.Add(&Origin{}).ProcID = []byte("z")
	var got []byte
	for _, m := range b.Messages() {
		got = append(got, m.ProcID...)
	}
	if string(got) != "abcdz" {
		t.Errorf("messages %s", got)
	}
}

func TestACopyOnAnotherRouteKeepsTheBytesOfTheOriginal(t *testing.T) {
	b := newBatch(100, 1)
	b.Add(&Origin{}).Text = b.Copy([]byte("shared"))
	c := b.copy()
	b.recycle()
	other := newBatch(100, 1) // would take the memory if it were free
	other.Copy([]byte("XXXXXX"))
	if got := string(c.Messages()[0].Text); got != "shared" {
		t.Errorf("the copy reads %q", got)
	}
}

func TestSweepTakesOutWhatAFilterDecided(t *testing.T) {
	b := newBatch(100, 10)
	for i := range 5 {
		b.Add(&Origin{}).ProcID = []byte{byte('a' + i)}
	}
	msgs := b.Messages()
	b.Drop(msgs[0])
	b.Reject(msgs[1], "verdict", "no")
	b.Skip(msgs[2])
	if n, _ := b.sweep(); n != 1 || len(b.bad) != 1 {
		t.Errorf("%d dropped, %d rejected", n, len(b.bad))
	}
	if len(b.live) != 3 || len(b.Messages()) != 2 {
		t.Errorf("%d live, %d for the next filter", len(b.live), len(b.Messages()))
	}
}
