package sqlstore

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/router"
)

const (
	slowTries     = 3  // of a transaction that fails with what passes, before it is halved
	boundedProven = 10 // transactions in a row that succeed before larger ones are tried
)

// judge makes of a failure what the writer is to see.
func (d *postgres) judge(ctx context.Context, f *failure, n int) error {
	if f.class != slow {
		d.slow = 0
	}
	if f.class != ours {
		d.misled = 0
	}
	switch f.class {
	case down:
		d.drop()
	case ours:
		d.drop()
		if d.misled++; d.misled == 1 {
			return f // a fresh connection may have none of it
		}
	case slow:
		d.rollback(ctx)
		if d.slow++; d.slow < slowTries || !d.answers(ctx) {
			return f
		}
		d.slow = 0
		if n > 1 {
			d.bound.halve(n)
			return router.Permanent(f)
		}
		return d.suspected(f)
	case suspect: // at COMMIT, so nobody knows which row
		if n > 1 {
			return router.Permanent(f)
		}
		return d.suspected(f)
	}
	return f.told()
}

// suspected is a failure that came with a single row: it is the row's if the
// table took others.
func (d *postgres) suspected(f *failure) error {
	if d.cfg.rejectSchemaErrors() || len(d.parts) == 1 && d.parts[0].proven {
		return router.Permanent(f)
	}
	return router.NeedsOperator(f)
}

// answers reports whether the server is well otherwise. It may have ended the session.
func (d *postgres) answers(ctx context.Context) bool {
	if d.conn == nil && d.connect(ctx) != nil {
		return false
	}
	_, err := d.exec(ctx, "SELECT 1")
	return err == nil
}

// A bound is how many rows a transaction may have at present, since larger ones
// did not end in time. The zero bound is none.
type bound struct {
	most  int // 0: any number
	none  int // from so many on there is no bound
	since int // transactions that succeeded under it
}

func (b *bound) halve(n int) {
	if b.most == 0 {
		b.none = n
	}
	b.most, b.since = n/2, 0
}

// check sends a transaction that is too large back, to be halved.
func (b *bound) check(n int) error {
	if b.most == 0 || n <= b.most {
		return nil
	}
	return router.Permanent(fmt.Errorf("transactions of more than %d rows do not end in time at present", b.most))
}

func (b *bound) succeeded() {
	if b.most == 0 {
		return
	}
	if b.since++; b.since < boundedProven {
		return
	}
	b.since = 0
	if b.most *= 2; b.most >= b.none {
		*b = bound{}
	}
}
