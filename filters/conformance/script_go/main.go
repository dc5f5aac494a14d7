//go:build wasip1

// The script guest on the Go SDK: it does what a message lists in the field do, and puts what came of each step into the
// field did.
// ../README.md has the steps; ../script_c does the same on the C SDK.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	weir "github.com/weirlog/weir/filters/sdk/go"
)

var settings struct{ Init, Tick, Close [][]string }

func init() {
	weir.OnStart(func() error {
		if err := json.Unmarshal(weir.Config(), &settings); err != nil {
			return err
		}
		if run(weir.Message{}, settings.Init) != weir.Keep {
			return errors.New(reason)
		}
		return nil
	})
	weir.Handle(process)
	weir.OnTick(func() { run(weir.Message{}, settings.Tick) })
	weir.OnClose(func() { run(weir.Message{}, settings.Close) })
}

func main() {}

var (
	did    []string // what came of the steps
	reason string   // what the last step "fail" said
)

func process(m weir.Message) weir.Verdict {
	verdict := weir.Keep
	if list, ok := m.Get("do"); ok {
		var steps [][]string
		if err := json.Unmarshal([]byte(list), &steps); err != nil {
			return weir.Fail(err.Error())
		}
		if err := m.Unset("do"); err != nil {
			return weir.Fail(err.Error())
		}
		verdict = run(m, steps)
	}
	if len(did) > 0 {
		text, _ := json.Marshal(did)
		did = nil
		if err := m.SetJSON("did", text); err != nil {
			panic(err)
		}
	}
	return verdict
}

func run(m weir.Message, steps [][]string) weir.Verdict {
	for _, step := range steps {
		var a [4]string
		copy(a[:], step)
		switch a[0] {
		case "verdict":
			return weir.Verdict(number(a[1]))
		case "trap":
			panic("as the script says")
		case "fail":
			reason = a[1]
			weir.Fail(a[1])
		case "log":
			weir.Log(weir.Level(number(a[1])), a[2])
		case "tell":
			weir.Log(weir.LevelInfo, did[len(did)-1])
		default:
			head := strings.Join(step[:min(3, len(step))], " ")
			did = append(did, head+" = "+result(m, a))
		}
	}
	return weir.Keep
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func okOr(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func textOr(s string, ok bool) string {
	if !ok {
		return weir.ErrAbsent.Error()
	}
	return s
}

func result(m weir.Message, a [4]string) string {
	key := a[1]
	switch a[0] {
	case "get":
		s, ok := m.Get(key)
		if b, there := m.Append([]byte("."), key); there != ok || string(b) != "."+s {
			return "Append differs: " + string(b)
		}
		return textOr(s, ok)
	case "equals":
		s, ok := m.Get(key)
		return strconv.FormatBool(ok && s == a[2])
	case "size":
		s, ok := m.Get(key)
		return textOr(strconv.Itoa(len(s)), ok)
	case "type":
		return [...]string{"absent", "null", "bool", "int", "float", "string", "bytes", "array", "object"}[m.Type(key)]
	case "get_i64":
		n, err := m.Int(key)
		return valueOr(strconv.FormatInt(n, 10), err)
	case "get_f64":
		f, err := m.Float(key)
		return valueOr(strconv.FormatInt(int64(f*1000), 10)+"e-3", err)
	case "set":
		return okOr(m.Set(key, a[2]))
	case "set_bytes": // ~ is a byte that is not UTF-8
		return okOr(m.SetBytes(key, []byte(strings.ReplaceAll(a[2], "~", "\xff"))))
	case "copy":
		s, ok := m.Get(key)
		if !ok {
			return weir.ErrAbsent.Error()
		}
		return okOr(m.Set(a[2], s))
	case "set_json":
		return okOr(m.SetJSON(key, []byte(a[2])))
	case "set_i64":
		return okOr(m.SetInt(key, number(a[2])))
	case "set_f64":
		return okOr(m.SetFloat(key, thousandths(a[2])))
	case "set_bool":
		return okOr(m.SetBool(key, a[2] == "true"))
	case "unset":
		return okOr(m.Unset(key))
	case "count":
		return strconv.Itoa(m.Count())
	case "names":
		var names []string
		for name := range m.Fields() {
			names = append(names, name)
		}
		return strings.Join(names, ",")
	case "param":
		s, ok := m.Param(key, a[2])
		if b, there := m.AppendParam([]byte("."), key, a[2]); there != ok || string(b) != "."+s {
			return "AppendParam differs: " + string(b)
		}
		return textOr(s, ok)
	case "set_param":
		return okOr(m.SetParam(key, a[2], a[3]))
	case "unset_param":
		return okOr(m.UnsetParam(key, a[2]))
	case "unset_element":
		return okOr(m.UnsetElement(key))
	case "record":
		return string(m.AppendRecord(nil))
	case "set_record":
		return okOr(m.SetRecord([]byte(key)))
	case "emit":
		return okOr(weir.Emit([]byte(key)))
	case "route":
		return okOr(m.Route(key))
	case "kv_get":
		return textOr(weir.KVGet(key))
	case "kv_set":
		var ttl int64
		if a[3] != "" {
			ttl = number(a[3])
		}
		return okOr(weir.KVSet(key, a[2], time.Duration(ttl)*time.Millisecond))
	case "kv_del":
		return okOr(weir.KVDelete(key))
	case "kv_add":
		n, err := weir.KVAdd(key, number(a[2]))
		return valueOr(strconv.FormatInt(n, 10), err)
	case "metric_add":
		weir.MetricAdd(key, thousandths(a[2]))
		return "ok"
	case "metric_set":
		weir.MetricSet(key, thousandths(a[2]))
		return "ok"
	case "enabled":
		return strconv.FormatBool(weir.Enabled(weir.Level(number(key))))
	case "now":
		if weir.Now() < 1577836800000000000 {
			return "before 2020"
		}
		return "ok"
	case "random":
		if weir.Random() == weir.Random() {
			return "the same twice"
		}
		return "ok"
	case "wait":
		for until := weir.Now() + number(key)*1e6; weir.Now() < until; {
		}
		return "ok"
	case "long":
		return okOr(m.Set(key, strings.Repeat("x", int(number(a[2])))))
	case "long_key":
		return okOr(m.Set(strings.Repeat("k", int(number(key))), "v"))
	case "long_kv":
		return okOr(weir.KVSet(key, strings.Repeat("x", int(number(a[2]))), 0))
	case "allocations": // of Get, Append, Int, Set, SetInt; only this SDK has it
		var buf []byte
		var got [5]uint64
		for i, f := range []func(){
			func() { m.Get(key) },
			func() { buf, _ = m.Append(buf[:0], key) },
			func() { m.Int("severity") },
			func() { m.Set("a", "text") },
			func() { m.SetInt("b", 7) },
		} {
			f()
			got[i] = allocations(f)
		}
		return fmt.Sprint(got)
	case "fill", "fill_params", "fill_kv", "fill_emits":
		for i := range number(key) {
			if err := fill(m, a[0], i); err != nil {
				return err.Error() + " at " + strconv.FormatInt(i, 10)
			}
		}
		return "ok"
	}
	panic("no step " + a[0])
}

func fill(m weir.Message, what string, i int64) error {
	name := "f" + strconv.FormatInt(i, 10)
	switch what {
	case "fill":
		return m.SetInt(name, i)
	case "fill_params":
		return m.SetParam("fill@32473", name, "v")
	case "fill_kv":
		return weir.KVSet(name, "v", 0)
	}
	var r weir.Record
	r.Int("i", i)
	return r.Emit()
}

func thousandths(s string) float64 {
	switch s {
	case "nan":
		return math.NaN()
	case "inf":
		return math.Inf(1)
	}
	return float64(number(s)) / 1000
}

// allocations returns how many a call makes.
func allocations(f func()) uint64 {
	const runs = 64
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / runs
}

func valueOr(s string, err error) string {
	if err != nil {
		return err.Error()
	}
	return s
}
