package socket

import "github.com/prometheus/client_golang/prometheus"

var (
	descConnections = prometheus.NewDesc("weir_connections", "Connections that are open, of a source with stream listeners.", []string{"source"}, nil)
	descMost        = prometheus.NewDesc("weir_connections_limit", "Connections that a source may have open (max_connections).", []string{"source"}, nil)
)

// Metrics collects what all of these sources count by themselves; messages are counted by the router.
func Metrics(sources []*Source) prometheus.Collector { return metrics(sources) }

type metrics []*Source

// Describe and Collect implement prometheus.Collector.
func (metrics) Describe(ch chan<- *prometheus.Desc) { ch <- descConnections; ch <- descMost }

func (m metrics) Collect(ch chan<- prometheus.Metric) {
	for _, s := range m {
		if len(s.streams) == 0 {
			continue
		}
		ch <- prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(s.open.Load()), s.name)
		ch <- prometheus.MustNewConstMetric(descMost, prometheus.GaugeValue, float64(s.cfg.MaxConnections), s.name)
	}
}
