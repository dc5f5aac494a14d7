package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// A door is a destination that a replay has opened, and its run there.
type door struct {
	name string
	Target
	pos router.Positioner // nil: it keeps no positions
	err error             // of opening it, or why it takes nothing

	run   router.RunID
	last  uint64 // number given last
	at    uint64 // up to where it is known to be settled
	doubt bool   // a write has failed since, and it is not known how it ended

	asked map[router.RunID]answer // by others' runs
}

// An answer is what a destination said about a run.
type answer struct {
	at    uint64
	known bool
}

// door opens a destination, once.
func (p *replayer) door(ctx context.Context, name string) (*door, error) {
	d := p.doors[name]
	if d == nil {
		d = &door{name: name, run: router.NewRun(), asked: map[router.RunID]answer{}}
		p.doors[name] = d
		if d.Target, d.err = p.Open(ctx, name); d.err == nil {
			d.pos, _ = d.Destination.(router.Positioner)
		}
	}
	return d, d.err
}

// settled asks how far somebody else's run is, once.
func (d *door) settled(ctx context.Context, run router.RunID) (at uint64, known bool, err error) {
	if a, ok := d.asked[run]; ok {
		return a.at, a.known, nil
	}
	if at, known, err = d.pos.Position(ctx, run); err == nil {
		d.asked[run] = answer{at, known}
	}
	return at, known, err
}

// Of a destination that fails: how often it is tried again, and the longest pause.
const (
	tries    = 8
	mostWait = 3 * time.Second
)

// write brings pieces, which are pending and numbered in order, into their destination: afterwards they are
// stored, refused or stay. On error the rest is pending; d.doubt tells whether it may have been written.
func (p *replayer) write(ctx context.Context, d *door, pieces []*piece) error {
	b := router.NewBatch(roomOf(pieces), len(pieces))
	defer b.Discard()
	by := map[*router.Message]*piece{}
	for _, x := range pieces {
		m, err := b.AddBlob(x.blob, &p.origins)
		if err != nil {
			return err
		}
		by[m] = x
	}
	return p.offer(ctx, d, pieces, b.Messages(), by)
}

func roomOf(pieces []*piece) int {
	n := 1 << 20
	for _, x := range pieces {
		n += roomFor(len(x.blob)) - roomFor(0) + 4<<10
	}
	return n
}

// offer writes msgs, of which pieces are the letters.
func (p *replayer) offer(ctx context.Context, d *door, pieces []*piece, msgs []*router.Message, by map[*router.Message]*piece) error {
	reject := func(rows []router.Rejected) error {
		for i := range rows {
			x := by[rows[i].Message]
			x.code, x.column, x.reason = cmp.Or(rows[i].Code, "rejected"), rows[i].Column, rows[i].Reason
		}
		return p.note(pieces)
	}
	var unwilling error // NeedsOperator, of the write before
	for failed, pause := 0, 100*time.Millisecond; ; {
		err := d.look(ctx)
		if err == nil {
			for len(pieces) > 0 && pieces[0].number <= d.at {
				pieces[0].arrived()
				pieces, msgs = pieces[1:], msgs[1:]
			}
			if len(pieces) == 0 {
				return nil
			}
			if unwilling != nil {
				return p.settle(pieces, stays, "", unwilling)
			}
			if err = p.forget(pieces); err != nil {
				return err
			}
			span := router.Span{Run: d.run, From: d.at, To: pieces[len(pieces)-1].number}
			if err = d.write(ctx, span, msgs, reject); err == nil {
				continue
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case router.IsPermanent(err) && len(pieces) > 1:
			half := len(pieces) / 2
			if err := p.offer(ctx, d, pieces[:half], msgs[:half], by); err != nil {
				return err
			}
			return p.offer(ctx, d, pieces[half:], msgs[half:], by)
		case router.IsPermanent(err):
			return p.settle(pieces, refused, "permanent", err)
		case router.IsNeedsOperator(err) && !d.doubt: // it cannot even say how far it is: nor will it for the rest
			d.err = err
			return p.settle(pieces, stays, "", err)
		case router.IsNeedsOperator(err) && unwilling == nil:
			unwilling = err
			continue
		}
		if failed++; failed == tries {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if p.Log != nil {
			p.Log.Warn("a destination fails; it is tried again", "destination", d.name, "error", err, "after", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, mostWait)
	}
}

// look asks the destination how far the run is.
func (d *door) look(ctx context.Context) error {
	if d.pos == nil {
		d.doubt = false // as far as it can be told
		return nil
	}
	at, _, err := d.pos.Position(context.WithoutCancel(ctx), d.run)
	if err == nil {
		d.at, d.doubt = at, false
	}
	return err
}

func (d *door) write(ctx context.Context, span router.Span, msgs []*router.Message, reject func([]router.Rejected) error) error {
	d.doubt = true
	ctx = context.WithoutCancel(ctx) // a COMMIT on its way is not cut short
	if d.pos != nil {
		return d.pos.WriteAt(ctx, span, msgs, reject)
	}
	err := d.Write(ctx, msgs, reject)
	if err == nil {
		d.at, d.doubt = span.To, false
	}
	return err
}

// settle says of pieces that nobody will write them in this replay. It stands in the store before anything behind them
// is written: the position of that would seem to be theirs too.
func (p *replayer) settle(pieces []*piece, state int, code string, why error) error {
	for _, x := range pieces {
		x.state, x.code, x.column, x.reason = state, code, "", why.Error()
	}
	return p.note(pieces)
}

// note writes down what is known of pieces.
func (p *replayer) note(pieces []*piece) error {
	return transact(p.conn, func() error {
		for _, x := range pieces {
			if x.code == "" && x.state == pending {
				continue
			}
			err := sqlitex.Execute(p.conn, "UPDATE replays SET state = ?, code = ?, field = ?, reason = ? WHERE run = ? AND position = ?",
				&sqlitex.ExecOptions{Args: []any{x.state, x.code, x.column, x.reason, x.run.String(), position(x.number)}})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// forget takes back what an attempt refused that was not committed.
func (p *replayer) forget(pieces []*piece) error {
	noted := false
	for _, x := range pieces {
		noted = noted || x.code != ""
		x.code, x.column, x.reason = "", "", ""
	}
	if !noted {
		return nil
	}
	return sqlitex.Execute(p.conn, "UPDATE replays SET code = NULL, field = NULL, reason = NULL WHERE run = ? AND position BETWEEN ? AND ?",
		&sqlitex.ExecOptions{Args: []any{pieces[0].run.String(), position(pieces[0].number), position(pieces[len(pieces)-1].number)}})
}
