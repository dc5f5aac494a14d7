package deadletter

import "github.com/prometheus/client_golang/prometheus"

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
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, n := range s.kept {
		ch <- prometheus.MustNewConstMetric(descKept, prometheus.CounterValue, float64(n), w.kind, w.name)
	}
	for _, reason := range []string{"size", "age"} {
		ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(s.dropped[reason]), reason)
	}
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(s.used))
	ch <- prometheus.MustNewConstMetric(descLimit, prometheus.GaugeValue, float64(s.config.Size))
}
