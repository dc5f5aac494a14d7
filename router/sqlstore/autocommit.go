package sqlstore

import (
	"slices"

	"github.com/weirlog/weir/router"
)

// resumed remembers, without explicit commits, how far a failed Write came, so
// that the next one does not store the same rows again.
type resumed struct {
	first *router.Message // compared, never looked into
	n     int
	next  int // the first message that is not done
	bad   []refused
}

// begin prepares for msgs: from the start unless they begin with those of the failed Write.
func (r *resumed) begin(msgs []*router.Message) {
	if r.first != msgs[0] || r.n > len(msgs) {
		*r = resumed{bad: r.bad[:0]}
	}
}

func (r *resumed) stop(msgs []*router.Message, next int, bad []refused) {
	r.first, r.n, r.next = msgs[0], len(msgs), next
	r.bad = slices.Clone(bad)
}

// finish hands over what was refused and forgets the transaction.
func (r *resumed) finish(msgs []*router.Message, bad []refused, reject func([]router.Rejected) error) error {
	if len(bad) > 0 {
		if err := reject(letters(msgs, bad)); err != nil {
			r.stop(msgs, len(msgs), bad)
			return err
		}
	}
	*r = resumed{bad: r.bad[:0]}
	return nil
}
