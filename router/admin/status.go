package admin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// A Status is the answer of /status: what every part of the router does, and what is wrong with it. docs/status.md
// describes it for those who read the JSON.
//
// Names come from the configuration and are in its order. What a database, a guest or the system has said stands in
// reasons as it came: whoever shows them to a terminal escapes them.
type Status struct {
	Degraded     bool                `json:"degraded"` // there are problems
	Problems     []Problem           `json:"problems"` // the worst first
	Notes        []Problem           `json:"notes"`    // what an operator must know too, which may be meant so
	Stopping     *Stop               `json:"stopping,omitempty"`
	Program      ProgramStatus       `json:"program"`
	Memory       MemoryStatus        `json:"memory"`
	Sources      []SourceStatus      `json:"sources"`
	Routes       []RouteStatus       `json:"routes"`
	Filters      []FilterStatus      `json:"filters"`
	Destinations []DestinationStatus `json:"destinations"`
	DeadLetters  DeadLettersStatus   `json:"dead_letters"`
}

// A Problem is something that an operator must know now.
type Problem struct {
	Kind   string     `json:"kind"` // "source", "route", "filter", "destination", "dead_letters", "program"
	Name   string     `json:"name"`
	What   string     `json:"what"`    // in words
	WayOut string     `json:"way_out"` // in words
	Since  *time.Time `json:"since,omitempty"`
}

// A Stop is what is left of a stop under way.
type Stop struct {
	Left float64 `json:"left_seconds"` // of drain_timeout
}

// A Count is a counter since the start and how fast it grows: a second, on average over about the last ten seconds and
// the last minute (over the time since the start, when that is less).
type Count struct {
	Total   uint64  `json:"total"`
	Rate10s float64 `json:"per_second_10s"`
	Rate1m  float64 `json:"per_second_1m"`
}

// ProgramStatus is the process.
type ProgramStatus struct {
	Version       string    `json:"version"`
	Commit        string    `json:"commit,omitempty"`
	PID           int       `json:"pid"`
	Started       time.Time `json:"started"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	Configuration []string  `json:"configuration"` // files; none: the built-in one
	StateDir      string    `json:"state_dir"`
}

// MemoryStatus is in bytes.
type MemoryStatus struct {
	Used            uint64 `json:"used_bytes"` // by messages, of Limit
	Limit           uint64 `json:"limit_bytes"`
	Unfinished      uint64 `json:"unfinished_bytes"` // of messages whose end has not come
	UnfinishedLimit uint64 `json:"unfinished_limit_bytes"`
	Resident        uint64 `json:"resident_bytes"` // of the process; 0: not known
	Machine         uint64 `json:"machine_bytes"`  // that the machine or the container has; 0: not known
}

// A State is whether a part does what it is there for, as /readyz says.
type State struct {
	Ready  bool       `json:"ready"`
	Reason string     `json:"reason,omitempty"` // why not; when ready, what else there is to know
	Since  *time.Time `json:"since,omitempty"`
}

// SourceStatus is a source.
type SourceStatus struct {
	Name string `json:"name"`
	State
	Listen           []string         `json:"listen"` // none while weir stops
	Received         Count            `json:"received"`
	Missed           map[string]Count `json:"missed"` // by reason
	Truncated        Count            `json:"truncated"`
	Unrouted         Count            `json:"unrouted"`
	Connections      uint64           `json:"connections"`
	ConnectionsLimit uint64           `json:"connections_limit"` // 0: it has datagrams only
	// Held10s and Held1m are the shares of the time, 0 to 1, in which the source was held back.
	Held10s float64 `json:"held_share_10s"`
	Held1m  float64 `json:"held_share_1m"`
}

// RouteStatus is a route.
type RouteStatus struct {
	Name string `json:"name"`
	State
	From      []string         `json:"from"`
	Filters   []string         `json:"filters"`
	To        []string         `json:"to"`
	Received  Count            `json:"received"`
	Created   Count            `json:"created"`
	Dropped   Count            `json:"dropped"`
	Rejected  Count            `json:"rejected"`
	Lost      map[string]Count `json:"lost"` // by reason
	Delivered Count            `json:"delivered"`
	InFlight  uint64           `json:"in_flight"`
}

// FilterStatus is a filter, on all routes together.
type FilterStatus struct {
	Name string `json:"name"`
	State
	Module          string           `json:"module"`
	Refused         string           `json:"refused,omitempty"` // why the newest file of the module is not at work; "": it is
	SHA256          string           `json:"sha256"`            // the first 12 digits
	ABI             string           `json:"abi"`
	Version         string           `json:"version,omitempty"` // of the manifest
	Loaded          *time.Time       `json:"loaded,omitempty"`
	Messages        Count            `json:"messages"` // given to the guest
	Dropped         Count            `json:"dropped"`
	Rejected        Count            `json:"rejected"` // with those that it failed on, under on_error: reject
	Faults          map[string]Count `json:"faults"`   // by cause
	LastFault       *time.Time       `json:"last_fault,omitempty"`
	Instances       uint64           `json:"instances"`
	Memory          uint64           `json:"memory_bytes"`
	UnitsPerMessage float64          `json:"units_per_message"` // work of the last minute, or else since the start; instructions
}

// DestinationStatus is a destination, with all of its connections.
type DestinationStatus struct {
	Name string `json:"name"`
	State
	Kind            string           `json:"kind"`
	FlushTimeout    float64          `json:"flush_timeout_seconds"`
	Delivered       Count            `json:"delivered"`
	Stored          Count            `json:"stored"`
	Transactions    Count            `json:"transactions"`
	TransactionTime float64          `json:"transaction_seconds"` // mean since the start
	LastCommit      *time.Time       `json:"last_commit,omitempty"`
	Unanswered      float64          `json:"unanswered_seconds"` // for so long it has not answered; 0: nothing is asked
	InFlight        uint64           `json:"in_flight"`
	Oldest          float64          `json:"oldest_message_seconds"`
	Memory          uint64           `json:"memory_bytes"`
	MemoryLimit     uint64           `json:"memory_limit_bytes"`
	Rejected        Count            `json:"rejected"`
	Lost            map[string]Count `json:"lost"` // by reason
	Retries         Count            `json:"retries"`
	WentBack        Count            `json:"went_back"`
	Buffer          *BufferStatus    `json:"buffer,omitempty"`
}

// BufferStatus is the disk buffer of a destination.
type BufferStatus struct {
	Messages   uint64   `json:"messages"`
	Waiting    uint64   `json:"waiting_bytes"`
	Limit      uint64   `json:"limit_bytes"`
	FullIn     *float64 `json:"full_in_seconds,omitempty"` // at the growth of the last minute; absent: it does not grow
	Full       string   `json:"full,omitempty"`            // why it takes nothing; "": it does
	Unanswered float64  `json:"unanswered_seconds"`        // for so long its disk has not answered
	Failures   Count    `json:"sync_failures"`
}

// DeadLettersStatus is what nobody took.
type DeadLettersStatus struct {
	State
	Letters    uint64           `json:"letters"`
	Bytes      uint64           `json:"bytes"`
	Limit      uint64           `json:"limit_bytes"`
	Oldest     *time.Time       `json:"oldest,omitempty"`
	Kept       []Kept           `json:"kept"`    // since the start, by who rejected; the most first
	Dropped    map[string]Count `json:"dropped"` // from the store, by reason
	Unanswered float64          `json:"unanswered_seconds"`
}

// Kept counts the letters of one cause.
type Kept struct {
	Kind  string `json:"kind"` // "filter" or "destination"
	Name  string `json:"name"`
	Class string `json:"class"`
	Count Count  `json:"count"`
}

// A reporter answers /status.
type reporter struct {
	subject Subject
	history *history
	one     sync.Mutex // answer is made at a time: many who ask take no more of the processor
}

// watch takes samples until ctx ends. Nothing it asks waits for a part of the router.
func (p *reporter) watch(ctx context.Context) {
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		select {
		case now := <-every.C:
			families, _ := p.subject.Gatherer.Gather() // what could be gathered, as for /metrics
			p.history.add(now, families)
		case <-ctx.Done():
			return
		}
	}
}

func (p *reporter) status(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, p.report())
}

func (p *reporter) report() Status {
	p.one.Lock()
	defer p.one.Unlock()
	families, _ := p.subject.Gatherer.Gather()
	plan := p.subject.Plan
	if p.subject.Stopping != nil {
		if left, is := p.subject.Stopping(); is {
			plan.Stopping = &Stop{round(max(0, left).Seconds())}
		}
	}
	return arrange(plan, p.subject.Parts(), newFigures(time.Now(), families, p.history))
}
