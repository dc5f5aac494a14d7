package router

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the router's own figures besides the ledger.
type metrics struct {
	batch       prometheus.Histogram
	transaction *prometheus.HistogramVec
	write       *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_batch_messages",
			Help: "Messages in a batch, as sources deliver them.", Buckets: prometheus.ExponentialBuckets(1, 4, 7)}),
		transaction: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_transaction_messages",
			Help: "Messages in a committed transaction, rejected ones included.", Buckets: prometheus.ExponentialBuckets(1, 4, 8)}, []string{"destination"}),
		write: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_write_seconds",
			Help: "Time from the first row of a transaction to its commit.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}, []string{"destination"}),
	}
}

var (
	descRoute       = prometheus.NewDesc("weir_route_messages_total", "Messages of a route by fate; received + created = dropped + rejected + lost + delivered + in flight.", []string{"route", "fate", "reason"}, nil)
	descDestination = prometheus.NewDesc("weir_destination_messages_total", "Messages of a destination by fate; delivered + resumed = stored + rejected + lost + kept + in flight.", []string{"destination", "fate", "reason"}, nil)
	descSource      = prometheus.NewDesc("weir_source_messages_total", "Messages that a source has delivered, each once however many routes take it.", []string{"source"}, nil)
	descHeld        = prometheus.NewDesc("weir_source_held_seconds_total", "Time in which a source was held back: at least one of its readers waited for memory.", []string{"source"}, nil)
	descMissed      = prometheus.NewDesc("weir_missed_total", "Messages that a source never accepted, by reason.", []string{"source", "reason"}, nil)
	descUnrouted    = prometheus.NewDesc("weir_unrouted_total", "Messages that no route takes.", []string{"source"}, nil)
	descTruncated   = prometheus.NewDesc("weir_truncated_total", "Messages that were cut at max_message.", []string{"source"}, nil)
	descInFlight    = prometheus.NewDesc("weir_in_flight", "Messages that a route or a destination holds.", []string{"kind", "name"}, nil)
	descOldest      = prometheus.NewDesc("weir_destination_oldest_message_seconds", "Age of the oldest message that waits for the destination; 0 when none does.", []string{"destination"}, nil)
	descBack        = prometheus.NewDesc("weir_destination_went_back_total", "Committed messages that the destination no longer had when weir asked it: the database was put back, or crashed without durable commits.", []string{"destination"}, nil)
	descReady       = prometheus.NewDesc("weir_destination_ready", "1 when the destination's last attempt succeeded, else 0.", []string{"destination"}, nil)
	descUnanswered  = prometheus.NewDesc("weir_destination_unanswered_seconds", "How long the destination has not answered what it was asked last: a transaction, a connection; 0 while nothing is asked.", []string{"destination"}, nil)
	descFilling     = prometheus.NewDesc("weir_destination_buffer_unanswered_seconds", "How long the disk has not answered the destination's disk buffer; 0 while nothing is asked.", []string{"destination"}, nil)
	descRetries     = prometheus.NewDesc("weir_destination_retries_total", "Attempts to store that failed and are made again.", []string{"destination"}, nil)
	descCommitted   = prometheus.NewDesc("weir_destination_last_commit_timestamp_seconds", "When the destination committed last; 0: not yet.", []string{"destination"}, nil)
	descMemory      = prometheus.NewDesc("weir_memory_bytes", "Memory that messages hold, of the configured memory.", []string{"pool"}, nil)
	descMemoryLimit = prometheus.NewDesc("weir_memory_limit_bytes", "The most that messages may hold.", []string{"pool"}, nil)
)

// Describe implements prometheus.Collector.
func (r *Router) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRoute, descDestination, descSource, descHeld, descMissed, descUnrouted, descTruncated, descInFlight, descOldest, descBack, descReady, descUnanswered, descFilling, descRetries, descCommitted, descMemory, descMemoryLimit} {
		ch <- d
	}
	r.metrics.batch.Describe(ch)
	r.metrics.transaction.Describe(ch)
	r.metrics.write.Describe(ch)
}

// Collect implements prometheus.Collector. All of the ledger is read in one moment.
func (r *Router) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	l := r.Ledger()
	for _, a := range l.Routes {
		counter(descRoute, a.Income, a.Name, string(FateReceived), "")
		for _, e := range a.Fates {
			counter(descRoute, e.N, a.Name, string(e.Fate), e.Reason)
		}
		gauge(descInFlight, float64(a.InFlight), "route", a.Name)
	}
	for _, a := range l.Destinations {
		counter(descDestination, a.Income, a.Name, string(FateDelivered), "")
		for _, e := range a.Fates {
			counter(descDestination, e.N, a.Name, string(e.Fate), e.Reason)
		}
		gauge(descInFlight, float64(a.InFlight), "destination", a.Name)
	}
	for name, s := range l.Sources {
		for reason, n := range s.Missed {
			counter(descMissed, n, name, reason)
		}
		counter(descSource, s.Received, name)
		counter(descUnrouted, s.Unrouted, name)
		counter(descTruncated, s.Truncated, name)
	}
	for _, in := range r.inlets {
		_, held := in.holding.state()
		ch <- prometheus.MustNewConstMetric(descHeld, prometheus.CounterValue, held.Seconds(), in.name)
	}
	for _, o := range r.outlets {
		var oldest, unanswered, filling time.Duration
		back, retries, committed := uint64(0), uint64(0), int64(0)
		for _, w := range o.writers {
			_, _, age := w.backlog()
			oldest = max(oldest, age)
			back += w.told.back.Load()
			retries += w.told.retries.Load()
			unanswered = max(unanswered, w.asked.since())
			filling = max(filling, w.filling.since(), w.reading.since())
			committed = max(committed, w.committed.Load())
		}
		gauge(descUnanswered, unanswered.Seconds(), o.name)
		if o.writers[0].spool != nil {
			gauge(descFilling, filling.Seconds(), o.name)
		}
		counter(descRetries, retries, o.name)
		gauge(descCommitted, float64(committed)/1e9, o.name)
		gauge(descOldest, oldest.Round(time.Millisecond).Seconds(), o.name)
		counter(descBack, back, o.name)
		ready := 0.0
		if o.part().Ready {
			ready = 1
		}
		gauge(descReady, ready, o.name)
	}
	for i, p := range r.budget.usage() {
		name := "memory"
		if i > 0 {
			name = "share:" + r.outlets[i-1].name
		}
		gauge(descMemory, float64(p.used), name)
		gauge(descMemoryLimit, float64(p.limit), name)
	}
	gauge(descMemory, float64(r.tails.Used()), "tails")
	gauge(descMemoryLimit, float64(r.tails.limit), "tails")
	r.metrics.batch.Collect(ch)
	r.metrics.transaction.Collect(ch)
	r.metrics.write.Collect(ch)
}
