package deadletter

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// A replayer is a Replay at work.
type replayer struct {
	Replay
	conn    *sqlite.Conn
	report  *Report
	doors   map[string]*door
	blocked map[int64]string // letters that a broken-off replay may have stored, and why nobody knows
	passed  []passed
	origins router.Origins
}

// bring writes the pieces of a chunk down, then to their destinations, and then says what became of its letters.
func (p *replayer) bring(ctx context.Context, c *chunk) error {
	if p.Dry {
		p.foretell(c)
		return nil
	}
	lost := router.NewRun() // of pieces that go nowhere
	to := map[*door][]*piece{}
	var order []*door
	for i, x := range c.pieces {
		if x.destination == "" {
			x.run, x.number = lost, uint64(i+1)
			continue
		}
		d, err := p.door(ctx, x.destination)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.state, x.reason = stays, err.Error()
			x.run, x.number = lost, uint64(i+1)
			continue
		}
		if to[d] == nil {
			order = append(order, d)
		}
		d.last++
		x.run, x.number = d.run, d.last
		to[d] = append(to[d], x)
	}
	if err := transact(p.conn, func() error { return p.plan(c.pieces) }); err != nil {
		return err
	}
	var failed error
	for _, d := range order {
		for rest := to[d]; len(rest) > 0 && failed == nil; {
			if failed = ctx.Err(); failed != nil {
				break
			}
			if d.err != nil {
				failed = p.settle(rest, stays, "", d.err)
				break
			}
			n := d.cut(rest)
			failed = p.write(ctx, d, rest[:n])
			rest = rest[n:]
		}
	}
	for _, d := range order {
		if d.doubt && d.pos != nil {
			return failed // the next replay asks
		}
	}
	return errors.Join(failed, p.resolve(c, false))
}

// cut is how many of pieces make one transaction.
func (d *door) cut(pieces []*piece) int {
	bytes := 0
	for i, x := range pieces {
		if bytes += len(x.blob); i > 0 && (i == d.Messages || bytes > d.Bytes) {
			return i
		}
	}
	return len(pieces)
}

// plan writes down what is about to be written.
func (p *replayer) plan(pieces []*piece) error {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	for _, x := range pieces {
		err := sqlitex.Execute(p.conn, "INSERT INTO replays (run, position, letter, destination, route, filter, blob, state, code, field, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			&sqlitex.ExecOptions{Args: []any{x.run.String(), position(x.number), x.letter, text(x.destination), text(x.route), text(x.filter), x.blob, x.state, text(x.code), text(x.column), text(x.reason)}})
		if err != nil {
			return err
		}
	}
	return nil
}
