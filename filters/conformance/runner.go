package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/wasmhost"
)

// Options is what the cases of a file have in common.
type Options struct {
	// Name is what the filter is called; "": case.
	Name string
	// Filter is the module, its limits and grants. Its Config is the cases'. With Defaults a filter has the times of a
	// router; cases are better given a minute.
	Filter wasmhost.Config
	// Dir is the folder of the cases' file.
	Dir string
	// CacheDir is where compiled modules are kept; "": nowhere.
	CacheDir string
	// Compiler is the command that compiles modules; nil: they are compiled in this process, without limits.
	Compiler []string
}

// A Runner gives cases to a module, in a host of its own. Cases of the same configuration and settings meet the same
// instance. One goroutine at a time uses it.
type Runner struct {
	options Options
	host    *wasmhost.Host
	log     *guestLog
	guests  map[string]*wasmhost.Guest // by configuration and settings
}

// NewRunner returns a runner without an instance yet.
func NewRunner(ctx context.Context, o Options) (*Runner, error) {
	if o.Name == "" {
		o.Name = "case"
	}
	log := &guestLog{}
	host, err := wasmhost.Open(ctx, wasmhost.Options{CacheDir: o.CacheDir, Compiler: o.Compiler, Log: slog.New(log), MaxMessage: mostRecord, TellAll: true})
	if err != nil {
		return nil, err
	}
	return &Runner{o, host, log, map[string]*wasmhost.Guest{}}, nil
}

const mostRecord = 1 << 20 // what weir takes when nothing else is said

// Close ends all instances.
func (r *Runner) Close(ctx context.Context) error {
	var err error
	for _, g := range r.guests {
		err = errors.Join(err, g.Close(ctx))
	}
	return errors.Join(err, r.host.Close(ctx))
}

// A Result is what came of a case.
type Result struct {
	Case Case
	// Got is the case as it came out. Fail and Log are set also where the case does not compare them.
	Got         Case
	Differences []Difference // none: passed
	// Host is whether weir itself broke its contract: what is expected is not to be changed for that.
	Host bool
	// Told is what weir said about the filter meanwhile: faults, with the guest's stack.
	Told []string
}

// Run gives a case to the module. An error says that there is something wrong with the case, or that ctx has ended.
func (r *Runner) Run(ctx context.Context, c *Case) (Result, error) {
	result := Result{Case: *c, Got: Case{Name: c.Name, Config: c.Config, In: c.In, Tick: c.Tick}}
	r.log.take()
	filter, err := r.configure(c)
	if err != nil {
		return result, err
	}
	g, err := r.guest(ctx, filter, string(c.Config)+"\n"+string(c.Settings))
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	if err == nil && c.Verdict == Refused {
		result.Got.Verdict = "started"
		result.Differences = []Difference{{"verdict", Refused, "started: nothing in weir_init refuses this config"}}
		return result, nil
	}
	if err != nil {
		_, text, refused := strings.Cut(err.Error(), "weir_init refused: ")
		if !refused {
			text = err.Error()
		}
		result.Got.Verdict, result.Got.Fail = Refused, &text
		if c.Verdict != Refused {
			result.Differences = []Difference{{"verdict", c.Verdict, Refused + ": " + err.Error()}}
			return result, nil
		}
	} else if err := r.try(ctx, g, &result); err != nil {
		return result, err
	}
	result.Got.Log, result.Told = r.log.take()
	return result, result.compare()
}

// configure returns the filter as the case has it.
func (r *Runner) configure(c *Case) (wasmhost.Config, error) {
	all := struct {
		Filter wasmhost.Config `yaml:"filter"`
	}{r.options.Filter}
	if given(c.Settings) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(c.Settings, &members); err != nil {
			return all.Filter, fmt.Errorf("settings: %w", err)
		}
		members["module"] = json.RawMessage(`"given"`)
		text, err := json.Marshal(map[string]any{"filter": members}) // which is YAML
		if err != nil {
			return all.Filter, fmt.Errorf("settings: %w", err)
		}
		all.Filter.FS = slices.Clone(all.Filter.FS)
		if err := config.Parse(&all, config.Options{Verbatim: true}, "settings", text).Err(); err != nil {
			return all.Filter, err
		}
		all.Filter.Module = r.options.Filter.Module
		for i, g := range all.Filter.FS {
			if _, own := members["fs"]; own && !filepath.IsAbs(g.Path) {
				all.Filter.FS[i].Path = filepath.Join(r.options.Dir, g.Path)
			}
		}
	}
	all.Filter.Config = c.Config
	return all.Filter, nil
}

// guest returns the filter of a configuration, which key stands for.
func (r *Runner) guest(ctx context.Context, filter wasmhost.Config, key string) (*wasmhost.Guest, error) {
	if g := r.guests[key]; g != nil {
		return g, nil
	}
	name := r.options.Name
	if n := len(r.guests); n > 0 { // state goes by the name
		name = fmt.Sprintf("%s-%d", name, n+1)
	}
	g, err := r.host.Load(ctx, name, filter)
	if err == nil {
		r.guests[key] = g
	}
	return g, err
}

// try gives the case's message to the guest, or a tick.
func (r *Runner) try(ctx context.Context, g *wasmhost.Guest, result *Result) error {
	c, got := &result.Case, &result.Got
	var trial wasmhost.Trial
	var err error
	if c.Tick {
		trial, err = g.TryTick(ctx)
	} else {
		trial, err = g.Try(ctx, c.In, c.Destinations...)
	}
	if err != nil {
		return fmt.Errorf("in: %w", err)
	}
	for _, e := range trial.Emitted {
		record, err := canonical(e, c.In)
		if err != nil {
			return fmt.Errorf("BUG: emitted record: %w", err)
		}
		got.Emit = append(got.Emit, record)
	}
	got.To, got.Metrics = trial.To, g.Measured()
	if c.Tick {
		return nil
	}
	if got.Verdict, got.Fail = trial.Verdict, &trial.Reason; trial.Failed {
		got.Verdict = Failed
	}
	record, err := canonical(trial.Record, c.In)
	if err != nil {
		return fmt.Errorf("BUG: the filter's record: %w", err)
	}
	switch got.Verdict {
	case Keep, Skip:
		got.Out = record
	case Reject, Failed:
		came, err := canonical(c.In, c.In)
		if err != nil {
			return fmt.Errorf("in: %w", err)
		}
		differ("in", came, record, func(d Difference) {
			d.Member += " (weir did not undo the edits)"
			result.Host, result.Differences = true, append(result.Differences, d)
		})
	}
	return nil
}

// compare tells how what came differs from what the case wants.
func (r *Result) compare() error {
	want, got := &r.Case, &r.Got
	add := func(d Difference) { r.Differences = append(r.Differences, d) }
	if want.Verdict != got.Verdict {
		d := Difference{"verdict", want.Verdict, got.Verdict}
		if got.Fail != nil && *got.Fail != "" {
			d.Got += ": " + *got.Fail
		}
		add(d)
	}
	if given(want.Out) || given(got.Out) {
		out, err := json.RawMessage("null"), error(nil)
		if given(want.Out) {
			if out, err = canonical(want.Out, want.In); err != nil {
				return fmt.Errorf("out: %w", err)
			}
		}
		switch {
		case !given(got.Out):
			add(different("out", string(asWritten(out, want.In)), "null"))
		case !given(want.Out):
			add(different("out", "null", string(asWritten(got.Out, want.In))))
		default:
			differ("out", out, got.Out, add)
		}
	}
	if want.Fail != nil && *want.Fail != *got.Fail {
		add(different("fail", quote(*want.Fail), quote(*got.Fail)))
	}
	if want.Log != nil {
		differLists("log", want.Log, got.Log, add)
	}
	if err := r.compareEmitted(add); err != nil {
		return err
	}
	differLists("to", want.To, got.To, add)
	for name, w := range want.Metrics {
		if g, ok := got.Metrics[name]; !ok {
			add(Difference{"metrics." + name, fmt.Sprint(w), absent})
		} else if g != w {
			add(Difference{"metrics." + name, fmt.Sprint(w), fmt.Sprint(g)})
		}
	}
	return nil
}

func (r *Result) compareEmitted(add func(Difference)) error {
	want, got := r.Case.Emit, r.Got.Emit
	for i := range max(len(want), len(got)) {
		path := fmt.Sprintf("emit[%d]", i)
		switch {
		case i >= len(got):
			add(different(path, string(want[i]), absent))
		case i >= len(want):
			add(different(path, absent, string(asEmitted(got[i], &r.Case))))
		default:
			record, err := canonical(want[i], r.Case.In)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			came := got[i]
			for _, name := range filledIn {
				if r.Case.Tick && !has(want[i], name) {
					came = cut(came, name)
				}
			}
			differ(path, record, came, add)
		}
	}
	return nil
}

// filledIn is what weir adds to a message that is created in a tick, differently each time and on each machine.
var filledIn = []string{"timestamp", "hostname", "app_name"}

// canonical is a record as the router writes it, without received_at when in has none.
func canonical(record, in json.RawMessage) (json.RawMessage, error) {
	var weirs struct {
		ReceivedAt             *time.Time `json:"received_at"`
		Source, Listener, Peer string
	}
	if err := json.Unmarshal(record, &weirs); err != nil {
		return nil, err
	}
	b := router.NewBatch(8*mostRecord+4*len(record), 1)
	defer b.Discard()
	m := b.Add(&router.Origin{Source: weirs.Source, Listener: weirs.Listener, Peer: weirs.Peer})
	if has(in, "received_at") && weirs.ReceivedAt != nil {
		m.Received = weirs.ReceivedAt.UnixNano()
	}
	p := router.RecordParser{Strict: true}
	if err := p.Parse(m, b.Copy(record), b); err != nil {
		return nil, err
	}
	return router.AppendRecord(nil, m), nil
}
