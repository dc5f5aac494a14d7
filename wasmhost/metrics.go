package wasmhost

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what a guest's lanes have added up.
type counts struct {
	calls     atomic.Uint64
	faults    [causes]atomic.Uint64
	units     atomic.Uint64
	instances atomic.Int64
	memory    atomic.Int64
}

var (
	descCalls = prometheus.NewDesc("weir_filter_calls_total",
		"Messages given to the filter's guest.", []string{"filter"}, nil)
	descFaults = prometheus.NewDesc("weir_filter_faults_total",
		"Messages on which the filter failed, and instances that could not be started (cause start).", []string{"filter", "cause"}, nil)
	descLastFault = prometheus.NewDesc("weir_filter_last_fault_timestamp_seconds",
		"When the filter failed last for this cause; there once it has.", []string{"filter", "cause"}, nil)
	descChanges = prometheus.NewDesc("weir_filter_module_changes_total",
		"Changed modules that took over (result changed) or were refused (result refused).", []string{"filter", "result"}, nil)
	descUnits = prometheus.NewDesc("weir_filter_units_total",
		"Work of the filter's guest and of its host calls, in instructions.", []string{"filter"}, nil)
	descInstances = prometheus.NewDesc("weir_filter_instances",
		"Instances of the filter's guest that exist.", []string{"filter"}, nil)
	descMemory = prometheus.NewDesc("weir_filter_memory_bytes",
		"Linear memory of all instances of the filter's guest.", []string{"filter"}, nil)
	descModule = prometheus.NewDesc("weir_filter_module_info",
		"Always 1; the labels say which module is at work: the beginning of its file's SHA-256, its ABI, and what its manifest says.", []string{"filter", "sha256", "abi", "version"}, nil)
	descLoaded = prometheus.NewDesc("weir_filter_module_loaded_timestamp_seconds",
		"When the module at work was loaded.", []string{"filter"}, nil)
	descOpen = prometheus.NewDesc("weir_filter_open",
		"1 while the filter is given up because it fails nearly always, else 0.", []string{"filter"}, nil)
)

// Describe and Collect make a Host a prometheus.Collector for all of its filters.
func (h *Host) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descCalls, descFaults, descUnits, descInstances, descMemory, descOpen, descLastFault, descChanges, descModule, descLoaded} {
		ch <- d
	}
}

func (h *Host) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.guests {
		counter := func(d *prometheus.Desc, n uint64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{g.name}, labels...)...)
		}
		gauge := func(d *prometheus.Desc, n int64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), g.name)
		}
		counter(descCalls, g.counts.calls.Load())
		for c := range causes {
			counter(descFaults, g.counts.faults[c].Load(), cause(c).String())
		}
		g.faults.mu.Lock()
		for c, at := range g.faults.at {
			if !at.IsZero() {
				ch <- prometheus.MustNewConstMetric(descLastFault, prometheus.GaugeValue, float64(at.UnixMilli())/1000, g.name, cause(c).String())
			}
		}
		g.faults.mu.Unlock()
		g.swap.mu.Lock()
		counter(descChanges, g.swap.done, "changed")
		counter(descChanges, g.swap.refused, "refused")
		loaded := g.swap.loaded
		g.swap.mu.Unlock()
		about := g.Report()
		ch <- prometheus.MustNewConstMetric(descModule, prometheus.GaugeValue, 1, g.name, about.SHA256[:min(12, len(about.SHA256))], about.ABI, strings.ToValidUTF8(about.Version, "?"))
		ch <- prometheus.MustNewConstMetric(descLoaded, prometheus.GaugeValue, float64(loaded.UnixMilli())/1000, g.name)
		counter(descUnits, g.counts.units.Load())
		gauge(descInstances, g.counts.instances.Load())
		gauge(descMemory, g.counts.memory.Load())
		open := int64(0)
		if g.breaker.isOpen() {
			open = 1
		}
		gauge(descOpen, open)
	}
}

// UserMetrics collects what filters measure by metric_add and metric_set. It describes nothing beforehand: the filters
// choose the names.
func (h *Host) UserMetrics() prometheus.Collector { return userMetrics{h} }

type userMetrics struct{ host *Host }

func (userMetrics) Describe(chan<- *prometheus.Desc) {}

func (u userMetrics) Collect(ch chan<- prometheus.Metric) {
	u.host.mu.Lock()
	defer u.host.mu.Unlock()
	for filter, k := range u.host.own {
		k.mu.Lock()
		for name, value := range k.metrics {
			d := prometheus.NewDesc("weir_filter_user_"+name, "Measured by filters.", []string{"filter"}, nil)
			ch <- prometheus.MustNewConstMetric(d, prometheus.UntypedValue, value, filter)
		}
		k.mu.Unlock()
	}
}
