package main

import (
	"fmt"
	"io"

	"github.com/weirlog/weir/router"
)

// atStop is what waits when weir stops, and how long that may take, as attributes of a log line.
func (p *plant) atStop() []any {
	out := []any{"drain_timeout", p.router.DrainTimeout()}
	for _, w := range p.router.Waiting() {
		out = append(out, w.Kind+"_"+w.Name, fmt.Sprintf("%d messages wait", w.Messages))
	}
	return out
}

// tellLost tells what a process that ends at once takes with it. The ledger counts it as in flight.
func tellLost(w io.Writer, waiting []router.Waiting) {
	for _, x := range waiting {
		if lost := x.Messages - x.OnDisk; lost > 0 {
			fmt.Fprintf(w, "%s %s: %d messages that were in flight are lost: weir had them in memory only\n", x.Kind, x.Name, lost)
		}
		if x.OnDisk > 0 {
			fmt.Fprintf(w, "%s %s: %d messages in flight are in its disk buffer: the next start sends them\n", x.Kind, x.Name, x.OnDisk)
		}
	}
}
