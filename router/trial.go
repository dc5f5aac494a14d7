package router

// NewBatch returns an empty batch that belongs to no router, for tools and tests that look at what a filter does. It
// has room for so many messages, and so many bytes for them and for what filters set; there is no more.
func NewBatch(bytes, messages int) *Batch {
	b := batches.Get().(*Batch)
	b.mem = memories.Get().(*memory)
	b.mem.refs.Store(1)
	b.limit = messages
	b.route = &route{} // delivered: it is never overdrawn
	b.hold = reservation{
		budget: &budget{pools: []pool{{limit: bytes, used: bytes}}},
		claims: []claim{{pool: 0, times: 1}},
		size:   bytes,
	}
	return b
}

// Discard gives a batch of NewBatch back.
func (b *Batch) Discard() { b.free() }

// An Outcome is what the filters decided about a message.
type Outcome struct {
	Verdict      string // keep, skip, drop or reject
	Code, Reason string // of reject
}

// Outcome tells what Drop, Skip or Reject said about m. It is for batches of NewBatch.
func (b *Batch) Outcome(m *Message) Outcome {
	switch m.fate {
	case skipping:
		return Outcome{Verdict: "skip"}
	case dropped:
		return Outcome{Verdict: "drop"}
	case rejected:
		for _, r := range b.bad {
			if r.Message == m {
				return Outcome{Verdict: "reject", Code: r.Code, Reason: r.Reason}
			}
		}
	}
	return Outcome{Verdict: "keep"}
}
