package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// resume finds out what became of what an earlier replay was about to write when it ended.
func (p *replayer) resume(ctx context.Context) error {
	pieces, err := p.planned()
	if err != nil || len(pieces) == 0 {
		return err
	}
	for _, x := range pieces {
		if x.state != pending || x.destination == "" {
			continue
		}
		d, err := p.door(ctx, x.destination)
		switch {
		case errors.Is(err, ErrUnknown):
			p.blocked[x.letter] = fmt.Sprintf("a replay to %s was broken off, and %[1]s is not in the configuration, to be asked what it has", x.destination)
			continue
		case err == nil && d.pos == nil:
			continue // what it has, nobody knows: it gets them again
		case err == nil:
			var at uint64
			if at, _, err = d.settled(ctx, x.run); err == nil {
				if x.number <= at {
					x.arrived()
				}
				continue
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.blocked[x.letter] = fmt.Sprintf("a replay to %s was broken off, and it cannot be asked what it has: %v", x.destination, err)
	}
	known := pieces[:0]
	for _, x := range pieces {
		if p.blocked[x.letter] == "" {
			known = append(known, x)
		}
	}
	return p.resolve(&chunk{pieces: known}, true)
}

// arrived says that the transaction of a piece is committed.
func (x *piece) arrived() {
	if x.state = stored; x.code != "" {
		x.state = refused
	}
}

// planned reads what an earlier replay has left.
func (p *replayer) planned() (pieces []*piece, err error) {
	const query = "SELECT run, position, letter, destination, route, filter, blob, state, code, field, reason FROM replays ORDER BY letter, run, position"
	err = sqlitex.Execute(p.conn, query, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		x := &piece{number: uint64(s.ColumnInt64(1)), letter: s.ColumnInt64(2), destination: s.ColumnText(3), route: s.ColumnText(4), filter: s.ColumnText(5),
			blob: columnBlob(s, 6), state: s.ColumnInt(7), code: s.ColumnText(8), column: s.ColumnText(9), reason: s.ColumnText(10)}
		var err error
		x.run, err = router.ParseRun(s.ColumnText(0))
		pieces = append(pieces, x)
		return err
	}})
	return pieces, err
}

// resolve says what became of the letters of a chunk, all at once.
func (p *replayer) resolve(c *chunk, earlier bool) error {
	var done []func()
	err := transact(p.conn, func() error {
		for _, n := range c.dropped {
			if err := p.remove(n); err != nil {
				return err
			}
		}
		of := map[int64][]*piece{}
		for _, x := range c.pieces {
			of[x.letter] = append(of[x.letter], x)
		}
		for _, x := range c.pieces {
			if pieces := of[x.letter]; pieces != nil {
				delete(of, x.letter)
				tell, err := p.end(x.letter, pieces, earlier)
				if err != nil {
					return err
				}
				done = append(done, tell)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.report.Dropped += len(c.dropped)
	for _, tell := range done {
		tell()
	}
	return nil
}

// end says what became of one letter, and returns what puts that into the report. If nothing of it was stored, the
// letter stays as it is, with what is now the reason. If some was, the rest becomes letters of those who refused it.
func (p *replayer) end(number int64, pieces []*piece, earlier bool) (tell func(), err error) {
	r := p.report
	l, there := Letter{}, false
	err = each(p.conn, "SELECT "+columnsOf(version)+" FROM letters WHERE number = ?", []any{number}, func(found Letter) error {
		l, there = found, true
		return nil
	})
	if err != nil {
		return nil, err
	}
	arrived := 0
	var worst *piece // the first that says most
	for _, x := range pieces {
		if x.state == stored {
			arrived++
		} else if worst == nil || worst.state != refused && x.state != pending {
			worst = x
		}
	}
	for _, x := range pieces {
		err := sqlitex.Execute(p.conn, "DELETE FROM replays WHERE run = ? AND position = ?", &sqlitex.ExecOptions{Args: []any{x.run.String(), position(x.number)}})
		if err != nil {
			return nil, err
		}
	}
	count := func(list *int) {
		for _, x := range pieces {
			if x.state == stored {
				r.To[x.destination]++
			}
		}
		if worst != nil {
			r.reason(list, worst.why())
		}
	}
	switch {
	case !there && number != 0: // removed meanwhile, by purge or by the store's bounds
		return func() {}, nil
	case worst == nil:
		err = p.remove(number)
		return func() {
			count(nil)
			if number != 0 {
				r.Replayed++
			}
			if earlier {
				r.Earlier++
			}
		}, err
	case arrived == 0 && number != 0 && worst.state == pending:
		return func() {
			if !earlier {
				count(&r.LeftOut)
			}
		}, nil
	case arrived == 0 && number != 0:
		if worst.state == refused {
			err = sqlitex.Execute(p.conn, "UPDATE letters SET code = ?, field = nullif(?, ''), reason = ? WHERE number = ?",
				&sqlitex.ExecOptions{Args: []any{worst.code, worst.column, worst.words(&l), number}})
		}
		return func() {
			if !earlier { // it is tried again now
				count(&r.Refused)
			}
		}, err
	}
	for _, x := range pieces {
		if x.state != stored {
			if err := p.insert(x); err != nil {
				return nil, err
			}
		}
	}
	return func() { count(&r.Refused) }, p.remove(number)
}

// insert makes a letter of a piece that was not stored.
func (p *replayer) insert(x *piece) error {
	b := router.NewBatch(roomFor(len(x.blob)), 1)
	defer b.Discard()
	m, err := b.AddBlob(x.blob, &p.origins)
	if err != nil {
		return err
	}
	l := Letter{Destination: x.destination, Route: x.route, Filter: x.filter, Code: x.code, Column: x.column, Reason: x.reason, Final: true}
	switch x.state {
	case stays:
		l.Code = "replay"
	case pending:
		l.Code, l.Reason = "replay", notReached
	}
	return insert(p.conn, time.Now().UnixNano(), &l, router.AppendRecord(nil, m), x.blob)
}

const notReached = "the replay ended before it was written"

// who refused a piece.
func (x *piece) who() string {
	switch {
	case x.destination != "":
		return x.destination
	case x.route != "":
		return x.route + "/" + x.filter
	}
	return x.filter
}

// words are the reason of a piece for a letter of others.
func (x *piece) words(l *Letter) string {
	if x.destination != "" && x.destination == l.Destination || x.filter != "" && x.filter == l.Filter {
		return x.reason
	}
	return x.who() + ": " + x.reason
}

// why is what the report says of a piece that was not stored.
func (x *piece) why() string {
	switch x.state {
	case pending:
		return x.who() + ": " + notReached
	case stays:
		return x.who() + ": " + x.reason
	}
	return x.who() + ": " + x.code + ": " + x.reason
}

func (p *replayer) remove(letter int64) error {
	return sqlitex.Execute(p.conn, "DELETE FROM letters WHERE number = ?", &sqlitex.ExecOptions{Args: []any{letter}})
}

// foretell reports what would be offered.
func (p *replayer) foretell(c *chunk) {
	p.report.Dropped += len(c.dropped)
	seen := map[int64]bool{}
	for _, x := range c.pieces {
		switch {
		case x.destination != "":
			p.report.To[x.destination]++
		case !seen[-x.letter]:
			seen[-x.letter] = true
			p.report.reason(&p.report.Refused, x.why())
		}
		if x.destination != "" && x.letter != 0 && !seen[x.letter] {
			seen[x.letter] = true
			p.report.Replayed++
		}
	}
}
