package spool

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats count what happens in one spool. Describe and Collect make the spool a prometheus.Collector.
type stats struct {
	syncs, failed, dropped, damaged, torn prometheus.Counter
	seconds                               prometheus.Histogram

	bytes, waiting, limit, messages, oldest *prometheus.Desc
}

func (t *stats) init() {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "weir", Subsystem: "buffer", Name: name, Help: help})
	}
	t.syncs = counter("syncs_total", "Syncs of the disk buffer to the disk that worked.")
	t.failed = counter("sync_failures_total", "Syncs of the disk buffer that the disk failed.")
	t.dropped = counter("dropped_total", "Messages removed from the disk buffer undelivered, because it was full or they were too old.")
	t.damaged = counter("damaged_total", "Damaged places of the disk buffer that were met while reading, and segments whose header is damaged.")
	t.torn = counter("torn_bytes_total", "Bytes of unfinished records that were cut off at the start, after weir was killed.")
	t.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "weir", Subsystem: "buffer", Name: "sync_seconds", Help: "How long a sync of the disk buffer takes.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
	})
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("weir_buffer_"+name, help, nil, nil)
	}
	t.bytes = gauge("bytes", "Bytes of the disk buffer, with what is delivered and not yet removed.")
	t.waiting = gauge("waiting_bytes", "Bytes of the disk buffer, about, that are not yet delivered.")
	t.limit = gauge("limit_bytes", "Bytes that the disk buffer may have.")
	t.messages = gauge("messages", "Messages in the disk buffer that are not yet delivered.")
	t.oldest = gauge("oldest_message_seconds", "Age of the oldest message in the disk buffer that is not yet delivered; 0 when there is none.")
}

func (t *stats) synced(took time.Duration, err error) {
	if err != nil {
		t.failed.Inc()
		return
	}
	t.syncs.Inc()
	t.seconds.Observe(took.Seconds())
}

func (t *stats) all() []prometheus.Collector {
	return []prometheus.Collector{t.syncs, t.failed, t.dropped, t.damaged, t.torn, t.seconds}
}

// Describe implements prometheus.Collector.
func (s *Spool) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.stats.all() {
		c.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{s.stats.bytes, s.stats.waiting, s.stats.limit, s.stats.messages, s.stats.oldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Spool) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s.stats.all() {
		c.Collect(ch)
	}
	b := s.Backlog()
	age := 0.0
	if !b.Oldest.IsZero() {
		age = max(0, time.Since(b.Oldest).Seconds())
	}
	for d, v := range map[*prometheus.Desc]float64{
		s.stats.bytes: float64(b.Bytes), s.stats.waiting: float64(b.Waiting), s.stats.limit: float64(b.Limit), s.stats.messages: float64(b.Messages), s.stats.oldest: age,
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
}
