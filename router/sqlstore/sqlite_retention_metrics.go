package sqlstore

import "github.com/prometheus/client_golang/prometheus"

// tendingMetrics are those of a SQLite file.
type tendingMetrics struct {
	used, free, wal, disk, full, index prometheus.Gauge
	removed                            *prometheus.CounterVec
}

func newTendingMetrics(destination string) *tendingMetrics {
	labels := prometheus.Labels{"destination": destination}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "weir", Subsystem: "sqlite", Name: name, Help: help, ConstLabels: labels})
	}
	m := &tendingMetrics{
		used:  gauge("used_bytes", "What rows and indexes take of the database file; what the retention's size bounds."),
		free:  gauge("free_bytes", "Free pages of the database file, for the next rows."),
		wal:   gauge("wal_bytes", "Size of the write-ahead log beside the database file."),
		disk:  gauge("disk_free_bytes", "Free space on the disk of the database file."),
		full:  gauge("disk_full", "1 while the disk is too full to store anything, else 0."),
		index: gauge("full_text_missing_rows", "About how many rows are not in the full-text index yet."),
		removed: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Subsystem: "sqlite", Name: "removed_rows_total",
			Help: "Rows that the retention removed, by the bound that was exceeded.", ConstLabels: labels}, []string{"reason"}),
	}
	for _, reason := range removalReasons[byAge:] {
		m.removed.WithLabelValues(reason)
	}
	return m
}

func (m *tendingMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.used, m.free, m.wal, m.disk, m.full, m.index, m.removed}
}

// describe and collect are those of prometheus.Collector.
func (m *tendingMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

func (m *tendingMetrics) collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}
