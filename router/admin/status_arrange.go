package admin

import (
	"cmp"
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirlog/weir/router"
)

// arrange fills what the configuration plans with the state of its parts and their figures.
func arrange(plan Status, parts []router.Part, f *figures) Status {
	s := plan
	state := func(kind, name string) (is State, trouble string) {
		for _, p := range parts {
			if p.Kind == kind && p.Name == name {
				return stateOf(p), p.Trouble
			}
		}
		return State{Ready: true}, ""
	}
	s.Program.Configuration = listed(plan.Program.Configuration)
	s.Program.UptimeSeconds = round(f.now.Sub(plan.Program.Started).Seconds())
	s.Memory.Used, s.Memory.Limit = f.whole("weir_memory_bytes", "pool", "memory"), f.whole("weir_memory_limit_bytes", "pool", "memory")
	s.Memory.Unfinished, s.Memory.UnfinishedLimit = f.whole("weir_memory_bytes", "pool", "tails"), f.whole("weir_memory_limit_bytes", "pool", "tails")
	s.Memory.Resident = f.whole("process_resident_memory_bytes")
	s.Sources, s.Routes, s.Filters, s.Destinations = listed(plan.Sources), listed(plan.Routes), listed(plan.Filters), listed(plan.Destinations)
	for i := range s.Sources {
		s.Sources[i].State, _ = state("source", s.Sources[i].Name)
		if s.Stopping != nil {
			s.Sources[i].Listen = nil // they were closed first
		}
		f.source(&s.Sources[i])
	}
	for i := range s.Routes {
		s.Routes[i].State, _ = state("route", s.Routes[i].Name)
		f.route(&s.Routes[i])
	}
	for i := range s.Filters {
		s.Filters[i].State, s.Filters[i].Refused = state("filter", s.Filters[i].Name)
		f.filter(&s.Filters[i], plan.Routes)
	}
	for i := range s.Destinations {
		is, trouble := state("destination", s.Destinations[i].Name)
		s.Destinations[i].State = is
		f.destination(&s.Destinations[i])
		if b := s.Destinations[i].Buffer; b != nil {
			b.Full = trouble
		}
	}
	s.DeadLetters.State, _ = state("dead_letters", "dead_letters")
	f.deadLetters(&s.DeadLetters)
	s.Problems, s.Notes = s.judge(f.now)
	s.Degraded = len(s.Problems) > 0
	return s
}

// stateOf is what people are told of a part.
func stateOf(p router.Part) State {
	is := State{Ready: p.Ready, Reason: p.Reason}
	if !p.Since.IsZero() {
		since := p.Since.UTC()
		is.Since = &since
	}
	return is
}

// listed is a copy that is a list in JSON also when it is empty.
func listed[T any](all []T) []T { return append([]T{}, all...) }

func (f *figures) source(s *SourceStatus) {
	s.Listen = listed(s.Listen)
	s.Received = f.count("weir_source_messages_total", "source", s.Name)
	s.Missed = f.by("reason", "weir_missed_total", "source", s.Name)
	s.Truncated = f.count("weir_truncated_total", "source", s.Name)
	s.Unrouted = f.count("weir_unrouted_total", "source", s.Name)
	s.Connections = f.whole("weir_connections", "source", s.Name)
	s.ConnectionsLimit = f.whole("weir_connections_limit", "source", s.Name)
	held := f.count("weir_source_held_seconds_total", "source", s.Name)
	s.Held10s, s.Held1m = min(held.Rate10s, 1), min(held.Rate1m, 1)
}

func (f *figures) route(r *RouteStatus) {
	r.From, r.Filters, r.To = listed(r.From), listed(r.Filters), listed(r.To)
	fate := func(of router.Fate) Count {
		return f.count("weir_route_messages_total", "route", r.Name, "fate", string(of))
	}
	r.Received, r.Created, r.Dropped = fate(router.FateReceived), fate(router.FateCreated), fate(router.FateDropped)
	r.Rejected, r.Delivered = fate(router.FateRejected), fate(router.FateDelivered)
	r.Lost = f.by("reason", "weir_route_messages_total", "route", r.Name, "fate", string(router.FateLost))
	r.InFlight = f.whole("weir_in_flight", "name", r.Name, "kind", "route")
}

func (f *figures) filter(s *FilterStatus, routes []RouteStatus) {
	f.each("weir_filter_module_info", []string{"filter", s.Name}, func(m *dto.Metric) {
		s.SHA256, s.ABI, s.Version = label(m, "sha256"), label(m, "abi"), label(m, "version")
	})
	s.Loaded = f.moment("weir_filter_module_loaded_timestamp_seconds", "filter", s.Name)
	s.Messages = f.count("weir_filter_calls_total", "filter", s.Name)
	s.Faults = f.by("cause", "weir_filter_faults_total", "filter", s.Name)
	s.LastFault = f.moment("weir_filter_last_fault_timestamp_seconds", "filter", s.Name)
	s.Dropped = f.count("weir_route_messages_total", "reason", s.Name, "fate", string(router.FateDropped))
	s.Rejected = f.count("weir_route_messages_total", "reason", s.Name, "fate", string(router.FateRejected))
	s.Instances = f.whole("weir_filter_instances", "filter", s.Name)
	s.Memory = f.whole("weir_filter_memory_bytes", "filter", s.Name)
	units := f.count("weir_filter_units_total", "filter", s.Name)
	switch {
	case s.Messages.Rate1m > 0:
		s.UnitsPerMessage = round(units.Rate1m / s.Messages.Rate1m)
	case s.Messages.Total > 0:
		s.UnitsPerMessage = round(float64(units.Total) / float64(s.Messages.Total))
	}
}

func (f *figures) destination(d *DestinationStatus) {
	fate := func(of router.Fate) Count {
		return f.count("weir_destination_messages_total", "destination", d.Name, "fate", string(of))
	}
	d.Delivered, d.Stored, d.Rejected = fate(router.FateDelivered), fate(router.FateStored), fate(router.FateRejected)
	d.Lost = f.by("reason", "weir_destination_messages_total", "destination", d.Name, "fate", string(router.FateLost))
	d.Transactions = f.count("weir_write_seconds", "destination", d.Name)
	f.each("weir_write_seconds", []string{"destination", d.Name}, func(m *dto.Metric) {
		if n := m.Histogram.GetSampleCount(); n > 0 {
			d.TransactionTime = round(m.Histogram.GetSampleSum() / float64(n))
		}
	})
	d.LastCommit = f.moment("weir_destination_last_commit_timestamp_seconds", "destination", d.Name)
	d.Unanswered = round(f.sum("weir_destination_unanswered_seconds", "destination", d.Name))
	d.InFlight = f.whole("weir_in_flight", "name", d.Name, "kind", "destination")
	d.Oldest = f.sum("weir_destination_oldest_message_seconds", "destination", d.Name)
	d.Memory = f.whole("weir_memory_bytes", "pool", "share:"+d.Name)
	d.MemoryLimit = f.whole("weir_memory_limit_bytes", "pool", "share:"+d.Name)
	d.Retries = f.count("weir_destination_retries_total", "destination", d.Name)
	d.WentBack = f.count("weir_destination_went_back_total", "destination", d.Name)
	if limit := f.whole("weir_buffer_limit_bytes", "destination", d.Name); limit > 0 {
		b := &BufferStatus{Limit: limit, Messages: f.whole("weir_buffer_messages", "destination", d.Name), Waiting: f.whole("weir_buffer_waiting_bytes", "destination", d.Name),
			Unanswered: round(f.sum("weir_destination_buffer_unanswered_seconds", "destination", d.Name)), Failures: f.count("weir_buffer_sync_failures_total", "destination", d.Name)}
		// What comes in a minute says nothing of a buffer that takes years to fill by it.
		if growth := f.growth("weir_buffer_waiting_bytes", "destination", d.Name); growth > 0 && limit > b.Waiting {
			if left := round(float64(limit-b.Waiting) / growth); left < (365 * 24 * time.Hour).Seconds() {
				b.FullIn = &left
			}
		}
		d.Buffer = b
	}
}

func (f *figures) deadLetters(d *DeadLettersStatus) {
	d.Letters = f.whole("weir_dead_letters")
	d.Bytes, d.Limit = f.whole("weir_dead_letters_bytes"), f.whole("weir_dead_letters_limit_bytes")
	d.Oldest = f.moment("weir_dead_letters_oldest_timestamp_seconds")
	d.Unanswered = round(f.sum("weir_dead_letters_unanswered_seconds"))
	d.Dropped = f.by("reason", "weir_dead_letters_dropped_total")
	d.Kept = []Kept{}
	f.each("weir_dead_letters_kept_total", nil, func(m *dto.Metric) {
		d.Kept = append(d.Kept, Kept{label(m, "kind"), label(m, "name"), label(m, "class"), f.counted("weir_dead_letters_kept_total", m)})
	})
	slices.SortFunc(d.Kept, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(b.Count.Total, a.Count.Total), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Class, b.Class))
	})
}

func (c Count) plus(d Count) Count {
	return Count{c.Total + d.Total, c.Rate10s + d.Rate10s, c.Rate1m + d.Rate1m}
}

// LastMinute is about how many were counted in the last minute.
func (c Count) LastMinute() uint64 { return min(c.Total, uint64(c.Rate1m*lately.Seconds()+0.5)) }

// inOrder visits counts by their names.
func inOrder(all map[string]Count, visit func(name string, c Count)) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		visit(name, all[name])
	}
}
