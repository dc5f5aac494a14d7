package admin

import (
	"math"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Samples are taken so often, and kept for as long as the longest average needs.
const (
	sampleEvery = 5 * time.Second
	shortly     = 10 * time.Second
	lately      = time.Minute
	mostSamples = int(lately/sampleEvery) + 2
)

// A history is what counters were in the last minute.
type history struct {
	mu      sync.Mutex
	index   map[string]int // of a series in values
	samples []sample       // the oldest first; at the start all counters were 0
}

type sample struct {
	at     time.Time
	values []float64
}

func newHistory(start time.Time) *history {
	return &history{index: map[string]int{}, samples: []sample{{at: start}}}
}

func (h *history) add(now time.Time, families []*dto.MetricFamily) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := sample{now, make([]float64, len(h.index))}
	for _, f := range families {
		if !sampled(f) {
			continue
		}
		for _, m := range f.Metric {
			key := seriesKey(f.GetName(), m)
			i, ok := h.index[key]
			if !ok {
				i = len(h.index)
				h.index[key] = i
			}
			for len(s.values) <= i {
				s.values = append(s.values, math.NaN())
			}
			s.values[i] = valueOf(m)
		}
	}
	if len(h.samples) == mostSamples {
		h.samples = append(h.samples[:0], h.samples[1:]...)
	}
	h.samples = append(h.samples, s)
}

// sampled are weir's own counters, and the one gauge whose growth is told.
func sampled(f *dto.MetricFamily) bool {
	name := f.GetName()
	if !strings.HasPrefix(name, "weir_") {
		return false
	}
	return f.GetType() == dto.MetricType_COUNTER || f.GetType() == dto.MetricType_HISTOGRAM || name == "weir_buffer_waiting_bytes"
}

// before is the newest sample that is so old, or else the oldest.
func (h *history) before(now time.Time, window time.Duration) sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.samples[0]
	for _, s := range h.samples {
		if now.Sub(s.at) >= window {
			found = s
		}
	}
	return found
}

// at is the value of a series in a sample; false: it was not there.
func (h *history) at(s sample, key string) (float64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i, ok := h.index[key]; ok && i < len(s.values) && !math.IsNaN(s.values[i]) {
		return s.values[i], true
	}
	return 0, false
}

// since is the value of a series in the newest sample that is so old, or else in the oldest that has it.
func (h *history) since(now time.Time, window time.Duration, key string) (at time.Time, value float64, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, ok := h.index[key]
	if !ok {
		return at, 0, false
	}
	for _, s := range h.samples {
		if known && now.Sub(s.at) < window {
			break
		}
		if i < len(s.values) && !math.IsNaN(s.values[i]) {
			at, value, known = s.at, s.values[i], true
		}
	}
	return at, value, known
}

func seriesKey(name string, m *dto.Metric) string {
	var b strings.Builder
	b.WriteString(name)
	for _, l := range m.Label { // sorted by the registry
		b.WriteByte(0)
		b.WriteString(l.GetValue())
	}
	return b.String()
}

// valueOf is a metric's number; a histogram's is how many were observed.
func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return 0
}

// Figures are all metrics of one moment, and how they have grown.
type figures struct {
	now         time.Time
	series      map[labelled][]*dto.Metric
	history     *history
	short, long sample
}

// labelled are the series of a metric that have a label; without one: all of them.
type labelled struct{ metric, label, value string }

func newFigures(now time.Time, families []*dto.MetricFamily, h *history) *figures {
	f := &figures{now: now, series: map[labelled][]*dto.Metric{}, history: h, short: h.before(now, shortly), long: h.before(now, lately)}
	for _, family := range families {
		name := family.GetName()
		f.series[labelled{metric: name}] = family.Metric
		for _, m := range family.Metric {
			for _, l := range m.Label {
				at := labelled{name, l.GetName(), l.GetValue()}
				f.series[at] = append(f.series[at], m)
			}
		}
	}
	return f
}

// each visits the series of a metric that have these labels: name, value, name, value … The first one is looked up, so
// that it had better be what tells most apart.
func (f *figures) each(name string, labels []string, visit func(m *dto.Metric)) {
	at := labelled{metric: name}
	if len(labels) > 0 {
		at.label, at.value = labels[0], labels[1]
	}
	for _, m := range f.series[at] {
		if hasLabels(m, labels) {
			visit(m)
		}
	}
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if label(m, labels[i]) != labels[i+1] {
			return false
		}
	}
	return true
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// sum adds up the series that have these labels.
func (f *figures) sum(name string, labels ...string) (sum float64) {
	f.each(name, labels, func(m *dto.Metric) { sum += valueOf(m) })
	return sum
}

// whole is sum, of what cannot be negative.
func (f *figures) whole(name string, labels ...string) uint64 {
	return uint64(max(0, f.sum(name, labels...)))
}

// most is the largest of the series that have these labels.
func (f *figures) most(name string, labels ...string) (most float64) {
	f.each(name, labels, func(m *dto.Metric) { most = max(most, valueOf(m)) })
	return most
}

// moment is the latest of the times that the series have; nil: none.
func (f *figures) moment(name string, labels ...string) *time.Time {
	return moment(f.most(name, labels...))
}

func moment(seconds float64) *time.Time {
	if seconds <= 0 {
		return nil
	}
	t := time.UnixMilli(int64(seconds * 1000)).UTC()
	return &t
}

// count adds up counters that have these labels, with their rates.
func (f *figures) count(name string, labels ...string) (c Count) {
	f.each(name, labels, func(m *dto.Metric) {
		c = c.plus(f.counted(name, m))
	})
	return c
}

// by is count for each value of a label that was counted at all.
func (f *figures) by(key, name string, labels ...string) map[string]Count {
	all := map[string]Count{}
	f.each(name, labels, func(m *dto.Metric) {
		if one := f.counted(name, m); one.Total > 0 {
			all[label(m, key)] = all[label(m, key)].plus(one)
		}
	})
	return all
}

func (f *figures) counted(name string, m *dto.Metric) Count {
	key, total := seriesKey(name, m), valueOf(m)
	rate := func(since sample) float64 {
		was, _ := f.history.at(since, key) // one that was not there had not counted anything
		return round(max(0, total-was) / max(f.now.Sub(since.at), time.Second).Seconds())
	}
	return Count{uint64(max(0, total)), rate(f.short), rate(f.long)}
}

// growth is how much a gauge grew a second in the last minute; 0: it did not, or nobody knows yet.
func (f *figures) growth(name string, labels ...string) (sum float64) {
	f.each(name, labels, func(m *dto.Metric) {
		if at, was, known := f.history.since(f.now, lately, seriesKey(name, m)); known {
			sum += (valueOf(m) - was) / max(f.now.Sub(at), sampleEvery).Seconds()
		}
	})
	return sum
}

// round leaves four digits behind the point: more are noise to whoever reads the JSON.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
