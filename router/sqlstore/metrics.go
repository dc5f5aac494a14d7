package sqlstore

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of one destination. Transactions and their times are
// counted by its writer.
type metrics struct {
	connects, repaired, refused prometheus.Counter
}

func (m *metrics) init(destination string) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "sql", Name: name, Help: help,
			ConstLabels: prometheus.Labels{"destination": destination},
		})
	}
	m.connects = counter("connects_total", "Connections opened to the database.")
	m.repaired = counter("repaired_total", "Values changed to be storable: NUL, invalid UTF-8, lone surrogates, absurd numbers and depths.")
	m.refused = counter("refusals_total", "Statements that the database refused because of a row, which was then looked for or rejected.")
}

func (m *metrics) all() []prometheus.Counter {
	return []prometheus.Counter{m.connects, m.repaired, m.refused}
}

func (m *metrics) describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

func (m *metrics) collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}
