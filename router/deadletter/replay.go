package deadletter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/router"
)

// A Replay sends letters again: each by its way, through filters, to destinations. A letter leaves the store when all
// that became of it is stored, or when a filter dropped it.
//
// What is about to be written stands in the store before it is, with its place in a run of the replay. So a replay that
// was killed is resolved by the next: a destination that is a router.Positioner tells what it has, and nothing
// goes in twice. Any other destination may get twice what was under way.
type Replay struct {
	Which Selection

	// Way says where a letter goes; an error leaves the letter out, and says why.
	Way func(*Letter) (*Way, error)

	// Open returns the destination of that name, opened for the replay, or ErrUnknown. It is called once for a name, also
	// to ask a destination how far it is.
	Open func(ctx context.Context, destination string) (Target, error)

	Dry bool // filter only, and count: nothing is opened, nothing changes
	Log *slog.Logger
}

// A Way leads letters to destinations. Letters that share one share its filters.
type Way struct {
	Route  string // to which the filters belong, if any
	Stages []Stage
	To     []string // destinations; filters may choose among them
}

// A Stage is a filter that messages pass.
type Stage struct {
	Name   string
	Filter router.Filter
}

// A Target is a destination and how much one transaction of it may hold.
type Target struct {
	router.Destination
	Messages, Bytes int
}

// ErrUnknown is what Replay.Open answers for a destination that there is not.
var ErrUnknown = errors.New("no such destination")

// A Report is what a replay did, in letters.
type Report struct {
	Replayed int            // stored, all that became of them, and removed
	Dropped  int            // by a filter, and removed
	Refused  int            // refused again: they stay, or what is left of them does
	LeftOut  int            // not tried
	Earlier  int            // of Replayed, stored by a replay that was broken off before
	To       map[string]int // messages that were stored, by destination; in a dry run: would be offered
	Reasons  map[string]int // of Refused and LeftOut, in words
}

func (r *Report) reason(list *int, why string) {
	*list++
	r.Reasons[why]++
}

const lockName = "dead_letters.replay"

var errLocked = errors.New("another replay is under way")

// lockReplay keeps others from replaying letters of dir until the file is closed.
func lockReplay(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the replay: %w", err)
	}
	if err = lock(f); err != nil {
		f.Close()
		if err != errLocked {
			err = fmt.Errorf("lock the replay (%s): %w", f.Name(), err)
		}
		return nil, err
	}
	return f, nil
}

// Replay sends letters again. When ctx ends, it ends behind the transaction under way. On error the report says how far it came; what was under way is resolved by the
// next Replay. It calls Open, Way and the filters in the caller's goroutine.
func (e *Editor) Replay(ctx context.Context, r Replay) (Report, error) {
	report := Report{To: map[string]int{}, Reasons: map[string]int{}}
	if e.layout < version {
		return report, errors.New("replay dead letters: they have the layout of an older weir; start this weir once, which brings them to its own")
	}
	if !r.Dry {
		lock, err := lockReplay(e.dir)
		if err != nil {
			return report, fmt.Errorf("replay dead letters: %w", err)
		}
		defer lock.Close()
	}
	p := &replayer{Replay: r, conn: e.conn, report: &report, doors: map[string]*door{}, blocked: map[int64]string{}}
	err := p.run(ctx)
	if err != nil {
		err = fmt.Errorf("replay dead letters: %w", err)
	}
	return report, err
}

func (p *replayer) run(ctx context.Context) error {
	newest, err := number(p.conn, "SELECT coalesce(max(number), 0) FROM letters") // what comes meanwhile was not meant
	if err != nil {
		return err
	}
	if !p.Dry {
		if err := p.resume(ctx); err != nil {
			return err
		}
	}
	for last := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		letters, err := p.next(last, newest)
		if err != nil {
			return err
		}
		if len(letters) == 0 {
			break
		}
		last = letters[len(letters)-1].Number
		var c chunk
		for i := range letters {
			if err := p.add(ctx, &c, &letters[i]); err != nil {
				return err
			}
		}
		if err := p.bring(ctx, &c); err != nil {
			return err
		}
	}
	var c chunk
	if err := p.finish(ctx, &c); err != nil {
		return err
	}
	return p.bring(ctx, &c)
}

// Most of what is in hand at once.
const (
	chunkLetters = 1000
	chunkBytes   = 4 << 20
)

// next reads the letters behind number last, some of them.
func (p *replayer) next(last, newest int64) (letters []Letter, err error) {
	where, args := p.Which.where()
	query := "SELECT " + columnsOf(version) + " FROM letters WHERE number > ? AND number <= ? AND " + where + " ORDER BY number LIMIT ?"
	bytes := 0
	err = each(p.conn, query, append(append([]any{last, newest}, args...), chunkLetters), func(l Letter) error {
		if bytes += len(l.blob) + len(l.Record) + len(l.Raw); bytes > chunkBytes && len(letters) > 0 {
			return errEnough
		}
		letters = append(letters, l)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return letters, err
}

var errEnough = errors.New("enough")

// add takes a letter through its filters into the chunk, or leaves it out.
func (p *replayer) add(ctx context.Context, c *chunk, l *Letter) error {
	if why := p.blocked[l.Number]; why != "" {
		p.report.reason(&p.report.LeftOut, why)
		return nil
	}
	way, err := p.Way(l)
	if err == nil && !p.Dry {
		err = p.committed(ctx, l)
	}
	var blob []byte
	if err == nil {
		blob, err = blobOf(l)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.report.reason(&p.report.LeftOut, err.Error())
		return nil
	}
	before := len(c.pieces)
	if err := p.pass(ctx, c, way, 0, traveller{letter: l.Number, blob: blob}); err != nil {
		return err
	}
	if len(c.pieces) == before {
		c.dropped = append(c.dropped, l.Number)
	}
	return nil
}

// committed reports, by an error, a letter whose transaction is not known to be committed: its message may come again.
func (p *replayer) committed(ctx context.Context, l *Letter) error {
	if l.Final || l.Destination == "" {
		return nil
	}
	d, err := p.door(ctx, l.Destination)
	if errors.Is(err, ErrUnknown) || err == nil && d.pos == nil {
		return nil // nobody can tell
	}
	if err == nil {
		var at uint64
		var known bool
		if at, known, err = d.settled(ctx, l.Run); err == nil {
			if known && l.Position > at {
				return fmt.Errorf("%s: their transaction is not committed (a running weir may be about to; else the next start settles them)", l.Destination)
			}
			return nil
		}
	}
	return fmt.Errorf("%s cannot be asked whether their transaction is committed: %w", l.Destination, err)
}

// blobOf is a letter's message, which can be read.
func blobOf(l *Letter) ([]byte, error) {
	b := router.NewBatch(roomFor(len(l.blob)+len(l.Record)+len(l.Raw)), 1)
	defer b.Discard()
	if l.blob != nil {
		if _, err := b.AddBlob(l.blob, nil); err != nil {
			return nil, fmt.Errorf("they cannot be read: %w", err)
		}
		return l.blob, nil
	}
	m, err := messageOf(b, l)
	if err != nil {
		return nil, fmt.Errorf("their record cannot be read: %w", err)
	}
	return router.AppendBlob(nil, m), nil
}
