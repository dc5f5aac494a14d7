package wasmhost

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// A shelf is what a filter's guests keep on the host's side: keys with values, and metrics. It is shared by all instances
// of the filter, and lives as long as the host does, so that a fault, a new module or a reload costs nothing of it.
type shelf struct {
	mu      sync.Mutex
	values  map[string]*kept
	bytes   int
	purged  time.Time
	metrics map[string]float64
	told    bool // that a metric was ignored
}

// kept is a value and its time.
type kept struct {
	value []byte
	until time.Duration // since epoch; 0: for ever
}

// Quotas of one filter (filters/ABI.md).
const (
	mostKeys     = 10_000
	MostKept     = 16 << 20 // bytes
	mostMetrics  = 1000
	keptOverhead = 100 // bytes of a key beside its text
)

var epoch = time.Now()

// shelfOf finds what the filter of a name has kept so far.
func (h *Host) shelfOf(filter string) *shelf {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.own[filter]
	if s == nil {
		s = &shelf{values: map[string]*kept{}, metrics: map[string]float64{}}
		h.own[filter] = s
	}
	return s
}

// get calls use with the value of key, under the lock; false: there is none.
func (s *shelf) get(key []byte, use func([]byte)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(key)
	if v == nil {
		return false
	}
	use(v.value)
	return true
}

// find returns the value of key, or nil. s.mu is held.
func (s *shelf) find(key []byte) *kept {
	v := s.values[string(key)]
	if v != nil && v.until != 0 && time.Since(epoch) >= v.until {
		s.drop(string(key), v)
		return nil
	}
	return v
}

func (s *shelf) drop(key string, v *kept) {
	s.bytes -= keptSize(len(key), len(v.value))
	delete(s.values, key)
}

func keptSize(key, value int) int { return key + value + keptOverhead }

// set keeps a copy of value for ttl; 0 or less: for ever. It reports whether there was room.
func (s *shelf) set(key, value []byte, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(key)
	if v == nil {
		if v = s.make(key, len(value)); v == nil {
			return false
		}
	} else if !s.fits(0, len(value)-len(v.value)) {
		return false
	}
	s.bytes += len(value) - len(v.value)
	if cap(v.value) > len(value)+len(value)/4+64 { // what is larger than it must be is not counted
		v.value = nil
	}
	v.value = append(v.value[:0], value...)
	if v.until = 0; ttl > 0 {
		if v.until = time.Since(epoch) + ttl; v.until < 0 {
			v.until = math.MaxInt64
		}
	}
	return true
}

// make adds an empty value when there is room for one of n bytes.
func (s *shelf) make(key []byte, n int) *kept {
	if !s.fits(1, keptSize(len(key), n)) {
		return nil
	}
	v := &kept{}
	s.values[string(key)] = v
	s.bytes += keptSize(len(key), 0)
	return v
}

// fits reports whether there is room for more; at most once a second it makes some by taking out what has ended.
func (s *shelf) fits(keys, bytes int) bool {
	full := func() bool { return len(s.values)+keys > mostKeys || s.bytes+bytes > MostKept }
	if !full() {
		return true
	}
	if now := time.Now(); now.Sub(s.purged) > time.Second {
		s.purged = now
		for key, v := range s.values {
			if v.until != 0 && now.Sub(epoch) >= v.until {
				s.drop(key, v)
			}
		}
	}
	return !full()
}

func (s *shelf) del(key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(key)
	if v != nil {
		s.drop(string(key), v)
	}
	return v != nil
}

// add adds to a number, which is kept as decimal text, and returns the sum. An absent one starts at 0.
func (s *shelf) add(key []byte, delta int64) (sum int64, code int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.find(key)
	n := int64(0)
	if v != nil {
		var err error
		if n, err = strconv.ParseInt(string(v.value), 10, 64); err != nil {
			return 0, errWrongType
		}
	} else if v = s.make(key, 20); v == nil {
		return 0, errTooMany
	}
	n += delta
	before := len(v.value)
	v.value = strconv.AppendInt(v.value[:0], n, 10)
	s.bytes += len(v.value) - before
	return n, 0
}

// measure adds to a metric, or sets it, and reports whether it is one.
func (s *shelf) measure(name []byte, value float64, add bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.metrics[string(name)]
	if !known && (len(s.metrics) >= mostMetrics || !metricName(name)) || math.IsNaN(value) {
		return false
	}
	if add {
		value += old
	}
	s.metrics[string(name)] = value
	return true
}

// metricName reports whether a name may stand behind weir_filter_user_.
func metricName(name []byte) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(name) > 0 && len(name) <= 200
}
