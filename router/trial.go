package router

// NewBatch returns an empty batch that belongs to no router, for tools and tests that look at what a filter does. It
// has room for so many messages, and so many bytes for them and for what filters set; there is no more. Filters may choose
// among the destinations; none: every name is one.
func NewBatch(bytes, messages int, destinations ...string) *Batch {
	b := takeBatch(messages, reservation{budget: &budget{pools: []pool{{limit: bytes, used: bytes}}}, claims: memoryClaim, size: bytes})
	b.route = &route{Route: Route{To: destinations}} // delivered: it is never overdrawn
	b.anywhere = len(destinations) == 0
	return b
}

// Discard gives a batch of NewBatch back.
func (b *Batch) Discard() { b.free() }

// An Outcome is what the filters decided about a message.
type Outcome struct {
	Verdict      string // keep, skip, drop or reject
	Code, Reason string // of reject

	Emitted []*Message // behind it; none with reject
	To      []string   // destinations that were chosen, in the route's order; nil: all
}

// Outcome tells what Drop, Skip, Reject, Emit and Route said about m. It is for batches of NewBatch.
func (b *Batch) Outcome(m *Message) Outcome {
	o := Outcome{Verdict: "keep"}
	switch m.fate {
	case skipping:
		o.Verdict = "skip"
	case dropped:
		o.Verdict = "drop"
	case rejected:
		for _, r := range b.bad {
			if r.Message == m {
				return Outcome{Verdict: "reject", Code: r.Code, Reason: r.Reason}
			}
		}
	}
	for e := m.behind; e != nil; e = e.behind {
		o.Emitted = append(o.Emitted, e)
	}
	for i, to := range b.route.To {
		if m.to&(1<<i) != 0 {
			o.To = append(o.To, to)
		}
	}
	return o
}
