package router

import (
	"fmt"
	"testing"
)

// choosy is an inlet with a route for each match; a nil one takes what is left.
func choosy(matches ...*Match) *inlet {
	r := &Router{budget: newBudget(64 << 20), metrics: newMetrics()}
	in := &inlet{router: r, limits: Limits{Bytes: 1 << 20, Messages: 1024}}
	for i, m := range matches {
		rt := &route{Route: Route{Name: fmt.Sprint(i), Match: m, Else: m == nil}, claims: memoryClaim}
		in.routes, in.claims = append(in.routes, rt), join(in.claims, rt.claims)
	}
	in.order()
	return in
}

// severe are n messages, one of each severity in turn, as a parser leaves them.
func (in *inlet) severe(t testing.TB, n int) *Batch {
	b, err := in.Take(t.Context(), 100*n, n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m := b.Add(&Origin{})
		m.Raw = b.Copy(fmt.Appendf(nil, "<%d>host app[12]: text of %04d", 8+i%8, i))
		m.Severity = uint8(i % 8)
		m.Hostname, m.AppName, m.ProcID, m.Text = m.Raw[3:7], m.Raw[8:11], m.Raw[12:14], m.Raw[17:]
		m.Structured = append(b.NewElements(1), Element{ID: m.Raw[3:7], Params: append(b.NewParams(1), Param{Name: m.Raw[8:11], Value: b.Copy([]byte(`un"escaped`))})})
		m.Fields = append(b.NewFields(1), Field{Name: []byte("n"), Value: Value{Kind: String, Bytes: m.Raw[12:14]}})
	}
	return b
}

func of(severities ...uint8) *Match {
	m := &Match{}
	for _, s := range severities {
		m.Severities |= 1 << s
	}
	return m
}

// What a choosy route gets is what was read, also when the batch that it came from is in use again; and what a route
// holds is what its own messages need.
func TestARouteGetsItsMessagesWithBytesOfTheirOwn(t *testing.T) {
	in := choosy(of(3), of(2, 3), nil)
	b := in.severe(t, 400)
	want := map[string]bool{}
	for _, m := range b.live {
		want[string(AppendRecord(nil, m))+string(m.Raw)] = true
	}
	d := new(division)
	in.divide(d, b)
	if len(d.batches) != 3 || d.unrouted != 0 {
		t.Fatalf("%d batches, %d unrouted", len(d.batches), d.unrouted)
	}
	other := in.severe(t, 400) // takes the memory of what is free
	for i := range other.live {
		for k := range other.live[i].Raw {
			other.live[i].Raw[k] = 'X'
		}
	}
	for i, n := range []int{50, 100, 300} {
		c := d.batches[i]
		if len(c.live) != n {
			t.Errorf("route %d got %d messages, want %d", i, len(c.live), n)
		}
		for _, m := range c.live {
			if !want[string(AppendRecord(nil, m))+string(m.Raw)] {
				t.Fatalf("route %d got %s", i, AppendRecord(nil, m))
			}
		}
		c.shrink()
	}
	other.free()
	if few, most := d.batches[0].hold.size, d.batches[2].hold.size; few > most/3 {
		t.Errorf("50 messages hold %d bytes, 300 hold %d", few, most)
	}
	for _, c := range d.batches {
		c.free()
	}
	if n := in.router.budget.pools[0].used; n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
}

func TestABatchThatOneRouteTakesIsNotCopied(t *testing.T) {
	in := choosy(of(0), of(0, 1, 2, 3, 4, 5, 6, 7))
	b := in.severe(t, 1)
	b.live[0].Severity = 4
	d := new(division)
	if in.divide(d, b); len(d.batches) != 1 || d.batches[0] != b || b.route != in.routes[1] || b.hold.size == 0 {
		t.Errorf("%d batches, route %v", len(d.batches), b.route)
	}
	if b.free(); in.router.budget.pools[0].used != 0 {
		t.Errorf("%d bytes are not given back", in.router.budget.pools[0].used)
	}
}

func TestWhatNoRouteTakesIsUnroutedAndGivenBack(t *testing.T) {
	in := choosy(of(0), of(1))
	b := in.severe(t, 1)
	b.live[0].Severity = 4
	d := new(division)
	if in.divide(d, b); len(d.batches) != 0 || d.unrouted != 1 {
		t.Errorf("%d batches, %d unrouted", len(d.batches), d.unrouted)
	}
	if b.free(); in.router.budget.pools[0].used != 0 {
		t.Errorf("%d bytes are not given back", in.router.budget.pools[0].used)
	}
}

func TestDividingCostsNoAllocationForAMessage(t *testing.T) {
	in := choosy(of(0), of(1, 2), of(3), of(3, 4), nil)
	n := testing.AllocsPerRun(50, func() {
		b := in.severe(t, 800)
		d := divisions.Get().(*division)
		in.divide(d, b)
		for _, c := range d.batches {
			c.free()
		}
		d.recycle()
	})
	plain := testing.AllocsPerRun(50, func() { in.severe(t, 800).free() })
	most := 75.0 // some for each batch; one for each message of the smallest route would be 100 more
	if raceDetector {
		most = 400
	}
	if n-plain > most {
		t.Errorf("%v allocations for 800 messages", n-plain)
	}
}
