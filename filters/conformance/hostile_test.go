package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/wasmhost"
)

// mostUnits is the work that a filter may take for one message, whatever is in it. Of Go's code the meter counts much that
// does not run: its functions are one loop each.
const mostUnits = 200_000_000

// changeTheText are the examples whose work is the text of a message. All others leave it alone, whatever it is.
var changeTheText = []string{"acs-record", "extism-lines", "join-traces", "json-fields", "redact-patterns", "split-records"}

// decidesAboutAnything gives what no sender should write to an example, in the configurations of its cases: it may keep,
// drop, reject or fail, but neither trap nor work without end, nor change what it does not mean to.
func decidesAboutAnything(t *testing.T, module, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := ReadCases(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r := newRunnerOf(t, options(module))
	leaves := !slices.Contains(changeTheText, filepath.Base(filepath.Dir(file)))
	configs, whole, most, units := map[string]*wasmhost.Guest{}, 0, 2, int64(mostUnits)
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "main.go")); err == nil {
		most, units = 1, math.MaxInt64
	}
	for _, c := range cases {
		if len(c.In) == 0 {
			continue
		}
		key := string(c.Config) + string(c.Settings)
		g := configs[key]
		if g == nil && len(configs) < most {
			filter, err := r.configure(&c)
			if err != nil {
				t.Fatal(err)
			}
			g = r.loadWith(t, filter)
			configs[key] = g
			for _, record := range hostileRecords() {
				decides(t, g, record, units, leaves)
			}
		}
		if g == nil || whole == 4 {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(c.In, &m); err != nil {
			t.Fatal(err)
		}
		text, _ := m["message"].(string)
		if len(text) > 0 {
			whole++
		}
		for n := 0; n < len(text); n += 1 + len(text)/25 { // a line that was cut
			m["message"] = text[:n]
			decides(t, g, record(t, m), units, leaves)
		}
	}
}

func (r *Runner) loadWith(t *testing.T, filter wasmhost.Config) *wasmhost.Guest {
	t.Helper()
	g, err := r.host.Load(t.Context(), "example", filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

func decides(t *testing.T, g *wasmhost.Guest, in []byte, units int64, leaves bool) {
	t.Helper()
	got, err := g.Try(t.Context(), in)
	if err != nil {
		t.Fatalf("%.200s: %v", in, err)
	}
	if got.Code != "" && got.Code != "verdict" && got.Code != "rejected" && got.Code != "failed" {
		t.Errorf("%.100s: %s: %s", in, got.Code, got.Reason)
	}
	if got.Verdict == Keep && leaves {
		came, err := canonical(in, in)
		if err != nil {
			t.Fatal(err)
		}
		if want, have := textOf(t, came), textOf(t, got.Record); want != have {
			t.Errorf("%.100s: its text became %.100q", in, have)
		}
	}
	if got.Units > units {
		t.Errorf("%.100s: %d units of work", in, got.Units)
	}
}

// textOf is the text of a message, and its bytes when they are no UTF-8.
func textOf(t *testing.T, record []byte) string {
	t.Helper()
	var m struct {
		Message string
		Bytes   string `json:"message_b64"`
	}
	if err := json.Unmarshal(record, &m); err != nil {
		t.Fatal(err)
	}
	return m.Message + "\x00" + m.Bytes
}

func record(t testing.TB, m map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hostileRecords are messages that look like what filters look for, and are not.
func hostileRecords() (all [][]byte) {
	const most = 64 << 10
	fill := func(s string) string { return strings.Repeat(s, most/len(s)) }
	texts := []string{"", " ", "\x00", fill("\""), fill("\\"), fill("\\\""), fill("="), fill("a="), fill("a=\""), fill("k=v "), fill(" "), fill("\n"), fill("\t"),
		fill("<"), fill("<Info TimeStamp=\""), "<Info TimeStamp=\"x\">" + fill("<![CDATA["), "<Info TimeStamp=\"x\">" + fill("<Data Name=\"a\">"),
		"<Info " + fill("a=\"\" "), fill("&#x41;"), fill("CEF:0|"), "CEF:0|a|b|c|d|e|5|" + fill("k=v ")[:60000], "CEF:0|a|b|c|d|e|5|" + fill("kLabel=k k=v ")[:13000],
		"CEF:0|" + fill("\\|"), "LEEF:2.0|a|b|c|d|^|" + fill("k=v^")[:3900], "LEEF:2.0|a|b|c|d||" + fill("#011"), "LEEF:1.0|a|b|c|d|" + fill("\t"),
		fill("["), fill("[1,"), "[" + strings.Repeat("1,", 1500) + "1]", fill("{\"a\":"), "{" + fill("\"a\":1,")[:60000] + "\"b\":2}", fill("{}"), fill("\\u"), fill("%40"),
		fill("a@b."), fill("a@"), fill("1.1.1."), fill("1:"), fill(":"), fill("a:b:c:d:e:f:a:b:c:"), fill("+1 "), fill("DE89 "), fill("DE00 0000 0000 0000 0"),
		fill("- "), "192.0.2.7 - " + fill("[30/Nov/2026:12:00:00 +0000"), "192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] \"" + fill("\\x2"),
		"192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 5 " + fill("\"a\" "), fill("Error: "), "Traceback (most recent call last):" + fill("\n  x"),
		fill("x") + "x", strings.Repeat("x", 300<<10), strings.Repeat("a=1 ", 75<<10), strings.Repeat("x@y.zz ", 20<<10)}
	for _, text := range texts {
		b, err := json.Marshal(map[string]string{"hostname": "h", "message": text})
		if err != nil {
			panic(err)
		}
		all = append(all, b)
	}
	for _, raw := range []string{"\xff", fill("\xff"), "\xc3", "\xed\xa0\x80", fill("k=\xff "), "CEF:0|\xff|b|c|d|e|5|\xff=\xfe a=\xfd", "[\"\xff\",\"b\"]", "\xff\n\xfe"} {
		all = append(all, fmt.Appendf(nil, `{"message_b64":%q}`, base64.StdEncoding.EncodeToString([]byte(raw))))
	}
	long := fill("x")
	all = append(all, fmt.Appendf(nil, `{"hostname":%q,"app_name":%q,"proc_id":"","msg_id":%q,"message":"m"}`, long[:60000], long[:60000], long[:60000]),
		fmt.Appendf(nil, `{"app_name":"CEF","message":"0|"}`), fmt.Appendf(nil, `{"app_name":"LEEF","message":"2.0|a|b|c|d|"}`),
		[]byte(`{"timestamp":"1700-01-01T00:00:00Z","severity":0,"facility":23,"message":"m","":"","a":null,"b":[[]],"c":{"":{}},"tenant":[],"addr":{},"trace":true,"n":1e300}`))
	full := &bytes.Buffer{}
	full.WriteString(`{"message":"a=1 b=2 {\"c\":3}"`)
	for i := range 1000 {
		fmt.Fprintf(full, `,"f%d":"v"`, i)
	}
	full.WriteString(`}`)
	params := &bytes.Buffer{}
	params.WriteString(`{"message":"m","structured_data":{"a@1":{"p":"v"`)
	for i := range 900 {
		fmt.Fprintf(params, `,"p%d":["v","w"]`[:0]+`,"p%d":"v@w.xx"`, i)
	}
	params.WriteString(`}}}`)
	return append(all, full.Bytes(), params.Bytes())
}

// alsoOfExample is what cases cannot tell about an example.
var alsoOfExample = map[string]func(t *testing.T, module string){
	"access-lines": failsWhatIsTooLong(`192.0.2.7 - - [30/Nov/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"`),
	"acs-record":   failsWhatIsTooLong(`<Info TimeStamp=\"2006-03-28T00:26:29.238\">`),
	"cef":          failsWhatIsTooLong(`CEF:0|a|b|c|d|e|5|msg=`),
	"key-value":    failsWhatIsTooLong(`a=1 b=`),
	"enrich":       enrichesFromAFile,
	"redact-patterns": func(t *testing.T, module string) {
		r := newRunner(t)
		g := r.load(t, module, nil)
		for _, n := range []int{1 << 10, 64 << 10, 300 << 10, 900 << 10} {
			got, err := g.Try(t.Context(), []byte(`{"message":"`+strings.Repeat("x", n)+` bob@example.com"}`))
			if err != nil || bytes.Contains(got.Record, []byte("bob@")) && got.Verdict == Keep {
				t.Errorf("a message of %d bytes: %s %v, with the address in it", n, got.Verdict, err)
			}
		}
	},
}

// failsWhatIsTooLong gives a text to a filter that does not fit its buffer: kept as it is it would be evaded by padding.
func failsWhatIsTooLong(start string) func(t *testing.T, module string) {
	return func(t *testing.T, module string) {
		r := newRunner(t)
		g := r.load(t, module, nil)
		for n, want := range map[int]string{60 << 10: Keep, 66 << 10: Failed} {
			got := r.run(t, g, []byte(`{"message":"`+start+strings.Repeat("x", n)+`"}`))
			if got.verdict != want {
				t.Errorf("%d bytes more: %s (%s), want %s", n, got.verdict, got.fail, want)
			}
		}
	}
}

func enrichesFromAFile(t *testing.T, module string) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "devices.csv")); err != nil {
			t.Fatal(err)
		}
	}
	write("# devices\nhostname,site,owner\nweb1,plant-7,\"shop, online\"\nweb2,plant-8,\n")
	o := options(module)
	o.Filter.FS = []wasmhost.Grant{{Path: dir, As: "/tables"}}
	o.Filter.Config = json.RawMessage(`{"file":"/tables/devices.csv","check":1}`)
	r := newRunner(t)
	g := r.loadWith(t, o.Filter)
	check := func(host, want string) {
		t.Helper()
		if got := r.run(t, g, []byte(`{"hostname":"`+host+`","message":"m"}`)); got.verdict != Keep || !strings.HasSuffix(got.out, `"message":"m"`+want+`}`) {
			t.Errorf("%s: %s %s, want %s", host, got.verdict, got.out, want)
		}
	}
	tick := func(told string) {
		t.Helper()
		if got, err := g.TryTick(t.Context()); err != nil || got.Failed {
			t.Fatalf("%+v %v", got, err)
		}
		if lines, _ := r.log.take(); !strings.Contains(strings.Join(lines, "\n"), told) || told == "" && len(lines) > 0 {
			t.Errorf("it logs %q, want %q", lines, told)
		}
	}
	check("web1", `,"site":"plant-7","owner":"shop, online"`)
	check("web2", `,"site":"plant-8"`)
	check("web3", ``)
	write("hostname,site\nweb1,\"plant-9\n")
	tick("the table stays as it was")
	tick("")
	check("web1", `,"site":"plant-7","owner":"shop, online"`)
	write("hostname,site\nweb1,plant-10\nweb3,plant-11\n")
	tick("")
	check("web1", `,"site":"plant-10"`)
	check("web2", ``)
	check("web3", `,"site":"plant-11"`)
	if err := os.Remove(filepath.Join(dir, "devices.csv")); err != nil {
		t.Fatal(err)
	}
	tick("the table stays as it was")
	check("web3", `,"site":"plant-11"`)
}
