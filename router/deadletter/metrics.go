package deadletter

import (
	"maps"
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
	used    int64     // bytes
	failed  error     // of the last Keep
	since   time.Time // when failed became or ceased to be nil
}

// who rejected.
type who struct{ kind, name string }

// result notes how a Keep ended.
func (s *stats) result(key router.LetterKey, rows int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err == nil) != (s.failed == nil) {
		s.since = time.Now()
	}
	s.failed = err
	if err != nil || rows == 0 {
		return
	}
	if s.kept == nil {
		s.kept = map[who]uint64{}
	}
	w := who{"filter", key.Filter}
	if key.Destination != "" {
		w = who{"destination", key.Destination}
	}
	s.kept[w] += uint64(rows)
}

// drop counts letters that had to go and returns the sum since the start.
func (s *stats) drop(d drops) drops {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped.size += d.size
	s.dropped.age += d.age
	return s.dropped
}

func (s *stats) size(used int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = used
}

// Parts tells for /readyz whether the store takes letters.
func (s *Store) Parts() []router.Part {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	p := router.Part{Kind: "dead_letters", Name: "dead_letters", Ready: s.stats.failed == nil, Since: s.stats.since}
	if !p.Ready {
		p.Reason = s.stats.failed.Error()
	}
	return []router.Part{p}
}

var (
	descKept    = prometheus.NewDesc("weir_dead_letters_kept_total", "Messages put into the dead letters, by who rejected them.", []string{"kind", "name"}, nil)
	descDropped = prometheus.NewDesc("weir_dead_letters_dropped_total", "Dead letters removed because the store was full (size) or they were too old (age).", []string{"reason"}, nil)
	descBytes   = prometheus.NewDesc("weir_dead_letters_bytes", "Bytes that the dead letters take of their database.", nil, nil)
	descLimit   = prometheus.NewDesc("weir_dead_letters_limit_bytes", "Bytes that the dead letters may take.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	ch <- descKept
	ch <- descDropped
	ch <- descBytes
	ch <- descLimit
}

// Collect implements prometheus.Collector. It does not touch the database.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.stats.mu.Lock()
	kept, dropped, used := maps.Clone(s.stats.kept), s.stats.dropped, s.stats.used
	s.stats.mu.Unlock()
	for w, n := range kept {
		ch <- prometheus.MustNewConstMetric(descKept, prometheus.CounterValue, float64(n), w.kind, w.name)
	}
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(dropped.size), "size")
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(dropped.age), "age")
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(used))
	ch <- prometheus.MustNewConstMetric(descLimit, prometheus.GaugeValue, float64(s.config.Size))
}
