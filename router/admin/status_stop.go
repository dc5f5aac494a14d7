package admin

// stopping tells what a stop may lose, and what it leaves for the next start.
func (j *judgement) stopping(s *Status) {
	if j.stop == nil {
		return
	}
	left := about(j.stop.Left)
	for _, d := range s.Destinations {
		inMemory, way := d.InFlight, "see that its database answers before that; a disk buffer (buffer: {disk: …}) keeps what a stop cannot store"
		if d.Buffer != nil {
			way = "see that its disk buffer takes messages again (a full disk, one that does not answer), or that its database does"
			inMemory -= min(inMemory, d.Buffer.Messages)
		}
		if inMemory > 0 {
			j.add("destination", d.Name, nil, way,
				"weir stops, %s left of drain_timeout: %d messages wait for it in memory, and are lost when it does not take them by then", left, inMemory)
		}
		if kept := d.InFlight - inMemory; kept > 0 {
			j.note("destination", d.Name, "nothing to do", "%d messages wait in its disk buffer: what is left of them at the end of the stop is sent at the next start", kept)
		}
	}
	for _, r := range s.Routes {
		if r.InFlight > 0 {
			j.add("route", r.Name, nil, "see its filters and its destinations; weir dlq ls tells what was rejected", "weir stops, %s left of drain_timeout: %d messages are on their way, and are lost when they do not arrive by then", left, r.InFlight)
		}
	}
}
