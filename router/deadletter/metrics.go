package deadletter

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
)

// stats is what is told about a store. It has a lock of its own, so that nobody
// who asks waits for the disk.
type stats struct {
	mu      sync.Mutex
	kept    map[who]uint64
	dropped drops
	letters int64
	used    int64     // bytes
	failed  error     // of the last Keep
	since   time.Time // when failed became or ceased to be nil
	began   time.Time // when the store was opened, with its monotonic reading
	asked   time.Time // the database has been asked something since; zero: it has answered
	oldest  int64     // Unix ns; 0: there is no letter
	recent  [recentMinutes]minute
	newest  string // CODE of WHO
}

// who rejected, and the class of the code.
type who struct{ kind, name, class string }

// minute counts letters of one minute.
type minute struct {
	n       int64
	letters int
}

const recentMinutes = 5

// minute counts them since the store was opened, on the monotonic clock.
func (s *stats) minute(now time.Time) int64 { return int64(now.Sub(s.began) / time.Minute) }

// result notes how a Keep or a Settle ended.
func (s *stats) result(now time.Time, key router.LetterKey, rows []router.Rejected, c change, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err == nil) != (s.failed == nil) {
		s.since = now
	}
	s.failed = err
	if err != nil {
		return
	}
	s.letters += c.delta()
	if len(rows) == 0 {
		return
	}
	if s.kept == nil {
		s.kept = map[who]uint64{}
	}
	w, name := who{kind: "filter", name: key.Filter}, key.Route+"/"+key.Filter
	if key.Destination != "" {
		w, name = who{kind: "destination", name: key.Destination}, key.Destination
	}
	for i := range rows {
		w.class = class(rows[i].Code)
		s.kept[w]++
	}
	s.newest = rows[len(rows)-1].Code + " of " + name
	n := s.minute(now)
	m := &s.recent[n%recentMinutes]
	if m.n != n {
		*m = minute{n: n}
	}
	m.letters += max(0, len(rows)-c.voided) // an attempt that is repeated counts once
}

// class is the first two characters of an SQLSTATE (its class in the SQL standard), SQLite's primary
// result name, or one of weir's words.
func class(code string) string {
	if rest, ok := strings.CutPrefix(code, "SQLITE_"); ok {
		name, _, _ := strings.Cut(rest, "_")
		return "SQLITE_" + name
	}
	if len(code) == 5 && strings.Trim(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return code[:2]
	}
	return code
}

// delta is by how many letters there are more.
func (c change) delta() int64 {
	return int64(c.kept - c.voided - c.dropped.size - c.dropped.age)
}

// add notes a change that was no Keep.
func (s *stats) add(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters += c.delta()
}

// is notes what is there.
func (s *stats) is(letters, used int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters, s.used = letters, used
}

// drop counts letters that had to go and returns the sum since the start.
func (s *stats) drop(d drops) drops {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped.size += d.size
	s.dropped.age += d.age
	return s.dropped
}

// ask notes that the database is asked something, which may take for ever on a disk that hangs; the returned function notes its answer.
// Who holds the store's lock calls it.
func (s *stats) ask() (answered func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = time.Time{}
	}
}

// from notes when the oldest letter was kept.
func (s *stats) from(oldest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = oldest
}

func (s *stats) size(used int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = used
}

// Parts tells for /readyz whether the store takes letters, and whether they grow.
func (s *Store) Parts() []router.Part { return []router.Part{s.stats.part(time.Now())} }

func (s *stats) part(now time.Time) router.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := router.Part{Kind: "dead_letters", Name: "dead_letters", Ready: s.failed == nil, Since: s.since}
	n := 0
	for _, m := range s.recent {
		if m.letters > 0 && m.n > s.minute(now)-recentMinutes {
			n += m.letters
		}
	}
	switch {
	case !p.Ready:
		p.Reason = s.failed.Error()
	case n == 1:
		p.Reason = "1 letter in the last 5 minutes: " + s.newest
	case n > 1:
		p.Reason = fmt.Sprintf("%d letters in the last 5 minutes, newest: %s", n, s.newest)
	}
	return p
}

var (
	descKept    = prometheus.NewDesc("weir_dead_letters_kept_total", "Messages put into the dead letters, by who rejected them and the class of the code.", []string{"kind", "name", "class"}, nil)
	descDropped = prometheus.NewDesc("weir_dead_letters_dropped_total", "Dead letters removed because the store was full (size) or they were too old (age).", []string{"reason"}, nil)
	descLetters = prometheus.NewDesc("weir_dead_letters", "Dead letters that are there.", nil, nil)
	descOldest  = prometheus.NewDesc("weir_dead_letters_oldest_timestamp_seconds", "When the oldest dead letter was kept; 0: there is none.", nil, nil)
	descAsked   = prometheus.NewDesc("weir_dead_letters_unanswered_seconds", "How long the dead letters' database has not answered; 0 while nothing is asked.", nil, nil)
	descBytes   = prometheus.NewDesc("weir_dead_letters_bytes", "Bytes that the dead letters take of their database.", nil, nil)
	descLimit   = prometheus.NewDesc("weir_dead_letters_limit_bytes", "Bytes that the dead letters may take.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	ch <- descKept
	ch <- descDropped
	ch <- descLetters
	ch <- descOldest
	ch <- descAsked
	ch <- descBytes
	ch <- descLimit
}

// Collect implements prometheus.Collector. It does not touch the database.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.stats.mu.Lock()
	kept, dropped, letters, used, oldest := maps.Clone(s.stats.kept), s.stats.dropped, s.stats.letters, s.stats.used, s.stats.oldest
	unanswered := time.Duration(0)
	if !s.stats.asked.IsZero() {
		unanswered = time.Since(s.stats.asked)
	}
	s.stats.mu.Unlock()
	for w, n := range kept {
		ch <- prometheus.MustNewConstMetric(descKept, prometheus.CounterValue, float64(n), w.kind, w.name, w.class)
	}
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(dropped.size), "size")
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(dropped.age), "age")
	ch <- prometheus.MustNewConstMetric(descLetters, prometheus.GaugeValue, float64(max(0, letters)))
	ch <- prometheus.MustNewConstMetric(descOldest, prometheus.GaugeValue, float64(oldest)/1e9)
	ch <- prometheus.MustNewConstMetric(descAsked, prometheus.GaugeValue, unanswered.Seconds())
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(used))
	ch <- prometheus.MustNewConstMetric(descLimit, prometheus.GaugeValue, float64(s.config.Size))
}
