package wasmhost

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// swap is the state of a guest's changes to new modules.
type swap struct {
	one sync.Mutex // one at a time

	mu      sync.Mutex
	loaded  time.Time // when the program at work was
	done    uint64
	refused uint64
	err     error     // why the newest file was refused; nil: it is the one at work
	since   time.Time // of err
}

// Reload reads the module again. When its bytes or its manifest have changed, it is judged, compiled and started beside
// the one at work, and each lane changes to it before its next batch: no message is lost, done twice or overtaken by
// another. What the old instances kept in their memory is lost, after their last weir_tick and weir_close. When anything
// about the new one is wrong, the old one stays and the error says why; it is told in the log and in Parts too.
//
// It is safe for concurrent use, also with everything else.
func (g *Guest) Reload(ctx context.Context) (changed bool, err error) {
	s := &g.swap
	s.one.Lock()
	defer s.one.Unlock()
	changed, err = g.reload(ctx)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	s.mu.Lock()
	told := s.err != nil && err != nil && s.err.Error() == err.Error()
	if s.err = err; err != nil && !told {
		s.since = time.Now()
	}
	switch {
	case err != nil:
		s.refused++
	case changed:
		s.done++
		s.loaded = time.Now()
	}
	s.mu.Unlock()
	switch {
	case told:
	case err != nil:
		g.log.Error("changed module refused, the one before it goes on", "error", err)
	case changed:
		g.log.Info("module changed", "sha256", g.Report().SHA256)
	}
	return changed, err
}

func (g *Guest) reload(ctx context.Context) (changed bool, err error) {
	old := g.program.Load()
	src, err := g.settings.open()
	if err != nil {
		return false, err
	}
	if src.sum() == old.sum {
		return false, nil
	}
	p, err := g.host.build(ctx, g.settings, src)
	if err != nil {
		return false, err
	}
	ready, err := g.prepare(ctx, p)
	if err != nil {
		p.release()
		return false, fmt.Errorf("%s: %w", g.settings.Module, err)
	}
	g.program.Store(p)
	rest := g.nursery.replace(ready)
	g.breaker.mend(time.Now()) // what it knows is of the old one
	for _, in := range rest {
		in.leave()
	}
	return true, old.release()
}

// prepare makes an instance of p for each lane that has one, at least one.
func (g *Guest) prepare(ctx context.Context, p *program) (ready []*instance, err error) {
	g.mu.Lock()
	n := max(len(g.lanes), 1)
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("the filter is closed")
	}
	for range n {
		in, err := g.newInstance(ctx, p)
		if err != nil {
			for _, in := range ready {
				in.leave()
			}
			return nil, err
		}
		if ready = append(ready, in); len(ready) == 1 {
			p.measure(in)
		}
	}
	return ready, nil
}

// refusal says what is wrong with the newest module; "": it is the one at work.
func (s *swap) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return ""
	}
	return fmt.Sprintf("the module of %s goes on, the changed one is refused since %s: %v",
		s.loaded.UTC().Format(time.RFC3339), s.since.UTC().Format(time.RFC3339), s.err)
}
