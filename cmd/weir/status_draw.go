package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/router/admin"
)

// drawStatus is the status for a person: what is wrong first, then everything in the configuration's order, so that
// what one looks for is always at the same place.
func drawStatus(s *admin.Status, at string, colors bool) string {
	p := statusPage{Status: s, colors: colors, now: s.Program.Started.Add(seconds(s.Program.UptimeSeconds))}
	p.top(at)
	p.problems()
	p.sources()
	p.routes()
	p.filters()
	p.destinations()
	p.letters()
	return p.b.String()
}

// A statusPage is the drawing of a status. What somebody outside has said goes through printable.
type statusPage struct {
	*admin.Status
	b      strings.Builder
	colors bool
	now    time.Time // at the router
}

func (p *statusPage) line(h hue, format string, args ...any) {
	p.b.WriteString(h.in(fmt.Sprintf(format, args...), p.colors) + "\n")
}

// age is how long ago something was.
func (p *statusPage) age(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return span(p.now.Sub(*t))
}

func (p *statusPage) top(at string) {
	files := "built-in configuration"
	if n := len(p.Program.Configuration); n == 1 {
		files = p.Program.Configuration[0]
	} else if n > 1 {
		files = fmt.Sprintf("%s and %d more", p.Program.Configuration[0], n-1)
	}
	p.line(bold, "weir %s · pid %d · up %s · %s · %s", printable(p.Program.Version), p.Program.PID, span(seconds(p.Program.UptimeSeconds)), printable(at), printable(files))
	m := p.Memory
	text := fmt.Sprintf("memory: messages %s of %s (%s) · unfinished ones %s of %s", bytesOf(m.Used), bytesOf(m.Limit), percent(m.Used, m.Limit), bytesOf(m.Unfinished), bytesOf(m.UnfinishedLimit))
	if m.Resident > 0 {
		text += " · process " + bytesOf(m.Resident)
	}
	if m.Machine > 0 {
		text += " of " + bytesOf(m.Machine)
	}
	p.line(plain, "%s", text)
}

func (p *statusPage) problems() {
	p.b.WriteString("\n")
	if p.Stopping != nil {
		p.line(yellow, "STOPPING: %s left of drain_timeout", span(seconds(p.Stopping.Left)))
	}
	switch n := len(p.Problems); {
	case n == 0 && p.Stopping != nil:
		p.line(green, "nothing is about to be lost")
	case n == 0:
		p.line(green, "all is well")
	case n == 1:
		p.line(red, "DEGRADED: 1 problem")
	default:
		p.line(red, "DEGRADED: %d problems", n)
	}
	p.list(p.Problems, red, "")
	p.list(p.Notes, yellow, "note: ")
}

// list draws problems or notes, each with its way out.
func (p *statusPage) list(all []admin.Problem, h hue, before string) {
	for _, x := range all {
		who := x.Kind + " " + x.Name
		if x.Kind == x.Name || x.Kind == "program" {
			who = strings.ReplaceAll(x.Name, "_", " ")
		}
		what := before + who + ": " + x.What
		if x.Since != nil {
			what += " (for " + p.age(x.Since) + ")"
		}
		p.b.WriteString("\n")
		for i, l := range wrap(printable(what), pageWidth-2) {
			p.line(h, "%s%s", strings.Repeat(" ", 2+2*min(i, 1)), l)
		}
		for _, l := range wrap(printable(x.WayOut), pageWidth-6) {
			p.line(plain, "      %s", l)
		}
	}
}

// heads are the titles of a table's columns; the first, and those that begin with <, stand at the left.
func heads(titles ...string) (cells []cell) {
	for i, t := range titles {
		text, left := strings.CutPrefix(t, "<")
		cells = append(cells, cell{text, bold, left || i == 0})
	}
	return cells
}

func (p *statusPage) draw(t *table) {
	if len(t.rows) > 0 {
		p.b.WriteString("\n")
		t.draw(&p.b, p.colors)
	}
}

func name(text string) cell { return cell{text: printable(text), left: true} }

func total(c admin.Count) cell { return cell{text: digits(c.Total)} }
func rate(c admin.Count) cell  { return cell{text: perSecond(c.Rate10s)} }

// trouble is a counter of what had better stay 0: red while it grows.
func trouble(all ...admin.Count) cell {
	var sum admin.Count
	for _, c := range all {
		sum.Total, sum.Rate1m = sum.Total+c.Total, sum.Rate1m+c.Rate1m
	}
	out := cell{text: digits(sum.Total)}
	switch {
	case sum.Rate1m > 0:
		out.hue = red
	case sum.Total > 0:
		out.hue = yellow
	}
	return out
}

func troubles(all map[string]admin.Count) cell { return trouble(slices.Collect(maps.Values(all))...) }

// reasons lists counters by reason.
func reasons(all map[string]admin.Count) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(all)) {
		out = append(out, printable(reason)+" "+lately(all[reason]))
	}
	return strings.Join(out, ", ")
}

// lately is a counter, with what came in the last minute.
func lately(c admin.Count) string {
	text := digits(c.Total)
	if n := c.LastMinute(); n > 0 {
		text += fmt.Sprintf(" (%s in the last minute)", digits(n))
	}
	return text
}

func (p *statusPage) sources() {
	t := table{head: heads("SOURCE", "received", "/s", "/s 1 min", "missed", "cut", "unrouted", "connections", "held", "<listens on")}
	for _, s := range p.Sources {
		open := cell{text: "-"}
		if s.ConnectionsLimit > 0 {
			open.text = digits(s.Connections) + " of " + digits(s.ConnectionsLimit)
		}
		held := cell{text: fmt.Sprintf("%.0f %%", s.Held10s*100)}
		if s.Since != nil {
			held.hue = yellow
		}
		first := "nothing: weir stops"
		if len(s.Listen) > 0 {
			first = printable(s.Listen[0])
		}
		t.row(name(s.Name), total(s.Received), rate(s.Received), cell{text: perSecond(s.Received.Rate1m)}, troubles(s.Missed), trouble(s.Truncated), trouble(s.Unrouted), open, held, cell{text: first, left: true})
		if len(s.Listen) > 1 {
			t.note(plain, "and on "+printable(strings.Join(s.Listen[1:], " ")))
		}
		if len(s.Missed) > 0 {
			t.note(yellow, "missed: "+reasons(s.Missed))
		}
		p.reason(&t, s.State)
	}
	p.draw(&t)
}

// reason tells what there is to know of a part that is ready; why others are not stands among the problems.
func (p *statusPage) reason(t *table, s admin.State) {
	if s.Reason == "" || !s.Ready {
		return
	}
	text := printable(s.Reason)
	if s.Since != nil {
		text += " (for " + p.age(s.Since) + ")"
	}
	t.note(yellow, text)
}

// longWay is a way of a route that has no room beside its numbers.
const longWay = 40

func (p *statusPage) routes() {
	t := table{head: heads("ROUTE", "received", "/s", "created", "dropped", "rejected", "lost", "delivered", "in flight", "<from → filters → to")}
	for _, r := range p.Routes {
		way := strings.Join(r.From, ",") + " → "
		if len(r.Filters) > 0 {
			way += strings.Join(r.Filters, ",") + " → "
		}
		way += strings.Join(r.To, ",")
		beside := printable(way)
		if utf8.RuneCountInString(beside) > longWay {
			beside = ""
		}
		t.row(name(r.Name), total(r.Received), rate(r.Received), total(r.Created), total(r.Dropped), trouble(r.Rejected), troubles(r.Lost), total(r.Delivered), cell{text: digits(r.InFlight)}, cell{text: beside, left: true})
		if beside == "" {
			t.note(plain, printable(way))
		}
		if len(r.Lost) > 0 {
			t.note(yellow, "lost: "+reasons(r.Lost))
		}
		p.reason(&t, r.State)
	}
	p.draw(&t)
}

// unitsEach is the work that a filter has with a message.
func unitsEach(f *admin.FilterStatus) string {
	switch {
	case f.Messages.Total == 0:
		return "-"
	case f.UnitsPerMessage < 1:
		return "<1"
	}
	return digits(uint64(f.UnitsPerMessage + 0.5))
}

func (p *statusPage) filters() {
	t := table{head: heads("FILTER", "messages", "/s", "dropped", "rejected", "faults", "units/msg", "memory", "state", "<module")}
	for _, f := range p.Filters {
		state := cell{text: "works", hue: green}
		if !f.Ready {
			state = cell{text: "GIVEN UP", hue: red}
		}
		module := filepath.Base(f.Module)
		if f.SHA256 != "" {
			module += " " + f.SHA256[:min(7, len(f.SHA256))]
		}
		if f.Loaded != nil {
			module += ", loaded " + p.age(f.Loaded) + " ago"
		}
		t.row(name(f.Name), total(f.Messages), rate(f.Messages), total(f.Dropped), trouble(f.Rejected), troubles(f.Faults), cell{text: unitsEach(&f)}, cell{text: bytesOf(f.Memory)}, state, cell{text: printable(module), left: true})
		if len(f.Faults) > 0 {
			t.note(yellow, fmt.Sprintf("faults: %s; the last %s ago", reasons(f.Faults), p.age(f.LastFault)))
		}
		p.reason(&t, f.State)
	}
	p.draw(&t)
}

func (p *statusPage) destinations() {
	t := table{head: heads("DESTINATION", "stored", "/s", "transactions", "last commit", "waiting", "oldest", "rejected", "lost", "<state")}
	for _, d := range p.Destinations {
		commit := cell{text: "never"}
		if d.LastCommit != nil {
			commit.text = p.age(d.LastCommit) + " ago"
		}
		oldest := cell{text: "-"}
		if d.Oldest > 0 {
			oldest.text = span(seconds(d.Oldest))
		}
		t.row(name(d.Name), total(d.Stored), rate(d.Stored), total(d.Transactions), commit, cell{text: digits(d.InFlight)}, oldest, trouble(d.Rejected), troubles(d.Lost), destinationState(&d))
		if b := d.Buffer; b != nil {
			text := fmt.Sprintf("disk buffer: %s of %s (%s), %s messages", bytesOf(b.Waiting), bytesOf(b.Limit), percent(b.Waiting, b.Limit), digits(b.Messages))
			if b.FullIn != nil && d.Lost["full"].Rate10s == 0 {
				text += ", full in " + span(seconds(*b.FullIn))
			}
			t.note(plain, text)
		} else if d.MemoryLimit > 0 && d.Memory > d.MemoryLimit/2 {
			t.note(yellow, fmt.Sprintf("%s of its %s of memory are used", bytesOf(d.Memory), bytesOf(d.MemoryLimit)))
		}
		if len(d.Lost) > 0 {
			t.note(yellow, "lost: "+reasons(d.Lost))
		}
		if d.Retries.Total > 0 {
			t.note(plain, "attempts that failed and were made again: "+lately(d.Retries))
		}
		if d.WentBack.Total > 0 {
			t.note(yellow, digits(d.WentBack.Total)+" messages that it had committed were gone when weir asked again")
		}
		p.reason(&t, d.State)
	}
	p.draw(&t)
}

func destinationState(d *admin.DestinationStatus) cell {
	switch {
	case !d.Ready:
		return cell{"NOT READY", red, true}
	case d.Unanswered >= 1:
		h := yellow
		if d.Unanswered >= 10 {
			h = red
		}
		return cell{"no answer for " + span(seconds(d.Unanswered)), h, true}
	case d.Buffer != nil && d.Buffer.Unanswered >= 1:
		return cell{"disk: no answer for " + span(seconds(d.Buffer.Unanswered)), red, true}
	case d.LastCommit == nil:
		return cell{"ready", plain, true}
	}
	return cell{"ready", green, true}
}

func (p *statusPage) letters() {
	d := p.DeadLetters
	p.b.WriteString("\n")
	p.b.WriteString(bold.in("DEAD LETTERS", p.colors))
	if d.Letters == 0 {
		p.line(plain, "  none")
	} else {
		p.line(plain, "  %s, %s of %s (%s), the oldest %s ago; weir dlq ls tells more", counted(int(d.Letters)), bytesOf(d.Bytes), bytesOf(d.Limit), percent(d.Bytes, d.Limit), p.age(d.Oldest))
	}
	const most = 5
	for i, k := range d.Kept {
		if i == most {
			p.line(plain, "    and of %d more causes", len(d.Kept)-most)
			break
		}
		h := yellow
		if k.Count.Rate1m == 0 {
			h = plain
		}
		p.line(h, "    since the start: %s of %s %s: %s", printable(k.Class), printable(k.Kind), printable(k.Name), lately(k.Count))
	}
	if len(d.Dropped) > 0 {
		p.line(yellow, "    removed: %s", reasons(d.Dropped))
	}
	if d.Reason != "" && d.Ready {
		p.line(plain, "    %s", printable(d.Reason))
	}
}
