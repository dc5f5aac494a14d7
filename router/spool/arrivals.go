package spool

import (
	"time"

	"github.com/weirlog/weir/router"
)

// An arrival is when a message came.
type arrival struct {
	number uint64
	time   int64 // Unix ns
}

// mostArrivals are known of a segment: one a second, and fewer when more than that many seconds wait in it.
const mostArrivals = 64

// arrived notes when message number came: to the second while little waits, in a longer backlog to a sixteenth of
// its length.
func (g *segment) arrived(number uint64, at int64) {
	g.forget()
	latest := g.arrivals[len(g.arrivals)-1]
	if len(g.arrivals) <= mostArrivals/4 {
		g.apart = int64(time.Second)
	}
	if d := at - latest.time; number <= latest.number || d < g.apart && d > -g.apart {
		return
	}
	if len(g.arrivals) == mostArrivals {
		for i := 2; i <= mostArrivals/2; i++ { // the second one stays: the first may be of long ago
			g.arrivals[i] = g.arrivals[2*i-1]
		}
		g.arrivals = g.arrivals[:mostArrivals/2+1]
		g.apart = max(2*g.apart, (latest.time-g.arrivals[1].time)/(mostArrivals/2))
	}
	g.arrivals = append(g.arrivals, arrival{number, at})
}

// forget drops the arrivals before the first message that is not acknowledged. That of the segment's first one stays, because
// acknowledgements may be taken back.
func (g *segment) forget() {
	i := g.known()
	if i > 1 {
		g.arrivals = append(g.arrivals[:1], g.arrivals[i:]...)
	}
}

// known is the index of the last arrival that is not behind the first message that is not acknowledged.
func (g *segment) known() (i int) {
	for i+1 < len(g.arrivals) && g.arrivals[i+1].number <= g.acked+1 {
		i++
	}
	return i
}

// oldest is about when the oldest message that is not acknowledged came.
func (g *segment) oldest() int64 { return g.arrivals[g.known()].time }

// find reads the segment up to the first message that is not acknowledged, for when it came. When that cannot be read, oldest
// stays the arrival of the segment's first one.
func (g *segment) find(d disk) {
	if g.lost || g.messages() == 0 || g.acked < g.first {
		return
	}
	f, err := d.open(g.name())
	if err != nil {
		return
	}
	defer f.Close()
	sc := newScanner(f, g.run, g.begin, g.size, g.first, nil)
	for {
		rec, err := sc.next()
		if err != nil || rec.number > g.last {
			return
		}
		if rec.kind != kindMessage || rec.number <= g.acked {
			continue
		}
		b := router.NewBatch(64<<20, 1)
		m, err := b.AddBlob(rec.blob, nil)
		if err == nil {
			g.arrivals = append(g.arrivals, arrival{g.acked + 1, m.Received})
		}
		b.Discard()
		if err == nil {
			return
		}
	}
}

// waiting is about how many bytes of the file are of messages that are not acknowledged.
func (g *segment) waiting() int64 {
	n := g.messages()
	if n == 0 {
		return 0
	}
	return int64(float64(g.size-g.begin) * float64(n) / float64(g.last-g.first+1))
}
