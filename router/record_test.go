package router

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/weirlog/weir/router/syslog"
)

// loose is a batch with memory of its own.
func loose() *Batch {
	return &Batch{mem: new(memory), limit: 1000, hold: reservation{size: 64 << 20}}
}

// at is 2026-01-01T00:00:05Z.
const at = int64(1767225605e9)

func sample() *Message {
	m := &Message{Origin: &Origin{Source: "edge", Listener: "udp://127.0.0.1:5514", Peer: "192.0.2.1"}, Received: at}
	m.Message = syslog.Message{Timestamp: at - 997e6, Facility: 20, Severity: 5,
		Hostname: []byte("web1.example.com"), AppName: []byte("shopd"), ProcID: []byte("8710"), MsgID: []byte("ID47"),
		Structured: []Element{{ID: []byte("cart@32473"), Params: []Param{{Name: []byte("items"), Value: []byte("3")}}}},
		Text:       []byte("checkout done")}
	m.Fields = []Field{{[]byte("user_id"), IntValue(7)}}
	return m
}

func TestRecordHasTheDocumentedOrder(t *testing.T) {
	want := `{"timestamp":"2026-01-01T00:00:04.003Z","received_at":"2026-01-01T00:00:05Z","facility":20,"severity":5,` +
		`"hostname":"web1.example.com","app_name":"shopd","proc_id":"8710","msg_id":"ID47",` +
		`"structured_data":{"cart@32473":{"items":"3"}},"message":"checkout done",` +
		`"source":"edge","listener":"udp://127.0.0.1:5514","peer":"192.0.2.1","user_id":7}`
	if diff := cmp.Diff(want, string(AppendRecord(nil, sample()))); diff != "" {
		t.Error(diff)
	}
}

func TestRecordLeavesOutWhatIsAbsent(t *testing.T) {
	m := &Message{Origin: &Origin{}, Received: at}
	m.Timestamp, m.Facility, m.Severity, m.AppName = NoTime, 1, 5, []byte{}
	want := `{"received_at":"2026-01-01T00:00:05Z","facility":1,"severity":5,"app_name":"","message":""}`
	if diff := cmp.Diff(want, string(AppendRecord(nil, m))); diff != "" {
		t.Error(diff)
	}
}

func TestRecordShowsBadBytesAndKeepsThemBeside(t *testing.T) {
	m := &Message{Origin: &Origin{}, Received: at}
	m.Timestamp, m.Text, m.Hostname = NoTime, []byte("caf\xe9 \xff\xfe\"\x00\x1b"), []byte("h\xff")
	want := `{"received_at":"2026-01-01T00:00:05Z","facility":0,"severity":0,"hostname":"h` + "\ufffd" + `",` +
		`"message":"caf` + "\ufffd \ufffd\ufffd" + `\"\u0000\u001b","message_b64":"Y2Fm6SD//iIAGw=="}`
	if diff := cmp.Diff(want, string(AppendRecord(nil, m))); diff != "" {
		t.Error(diff)
	}
}

func TestRepeatedParametersAreArrays(t *testing.T) {
	check := func(want string, pairs ...string) {
		t.Helper()
		e := Element{ID: []byte("x")}
		for i := 0; i < len(pairs); i += 2 {
			e.Params = append(e.Params, Param{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
		}
		if got := string(AppendStructured(nil, []Element{e})); got != `{"x":{`+want+`}}` {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(``)
	check(`"a":"1"`, "a", "1")
	check(`"a":["1","2"]`, "a", "1", "a", "2")
	check(`"a":["1","3","4"],"b":"2"`, "a", "1", "b", "2", "a", "3", "a", "4")
	check(`"b":"2","a":["1","3"]`, "b", "2", "a", "1", "a", "3")
	var many []string
	want := `"a":["0"`
	for i := range 40 {
		many = append(many, "a", strconv.Itoa(i), "b"+strconv.Itoa(i), "x")
		if i > 0 {
			want += `,"` + strconv.Itoa(i) + `"`
		}
	}
	want += `]`
	for i := range 40 {
		want += `,"b` + strconv.Itoa(i) + `":"x"`
	}
	check(want, many...)
}

func TestFloatsStayFloats(t *testing.T) {
	check := func(f float64, want string) {
		t.Helper()
		if got := string(AppendValue(nil, FloatValue(f))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(2, "2.0")
	check(-0.5, "-0.5")
	check(math.Copysign(0, -1), "-0.0")
	check(1e20, "100000000000000000000.0")
	check(1e21, "1e+21")
	check(1e-7, "1e-07")
	check(math.MaxFloat64, "1.7976931348623157e+308")
}

func TestTimesAreShortestRFC3339(t *testing.T) {
	for _, ns := range []int64{0, 1, -1, 999999999, 1e9, -1e9, at, at + 120000, math.MaxInt64, math.MinInt64 + 1, minTime,
		time.Date(2000, 2, 29, 23, 59, 59, 0, time.UTC).UnixNano(), time.Date(2100, 3, 1, 0, 0, 0, 5, time.UTC).UnixNano(),
		time.Date(1900, 2, 28, 1, 2, 3, 4000, time.UTC).UnixNano(), time.Date(2024, 12, 31, 0, 0, 0, 0, time.UTC).UnixNano()} {
		u := time.Unix(0, ns).UTC()
		if got, want := string(AppendTime(nil, ns)), u.Format(time.RFC3339Nano); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := string(AppendTimeMicro(nil, ns)), u.Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := ParseTime(AppendTime(nil, ns)); got != ns && ns >= minTime && ns < math.MaxInt64/1e9*1e9 {
			t.Errorf("%d came back as %d", ns, got)
		}
	}
}

func TestParseTimeTakesRFC3339Alone(t *testing.T) {
	check := func(in string, want int64) {
		t.Helper()
		if got := ParseTime([]byte(in)); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
	check("2026-01-01T00:00:05Z", at)
	check("2026-01-01t02:00:05+02:00", at)
	check("2025-12-31T17:00:05.1234567899-07:00", at+123456789)
	check("2025-12-31T23:59:60Z", at-5e9)
	check("2026-01-01 00:00:05Z", NoTime)
	check("2026-01-01T00:00:05", NoTime)
	check("2026-01-01T00:00:05.Z", NoTime)
	check("2026-02-30T00:00:05Z", NoTime)
	check("2026-01-01T24:00:05Z", NoTime)
	check("2026-01-01T00:00:05+0200", NoTime)
	check("1677-01-01T00:00:05Z", NoTime)
	check("2262-12-01T00:00:05Z", NoTime)
	check("2026-01-01T00:00:05Zulu", NoTime)
	check("", NoTime)
}

func TestKeysShowAsFiltersReadThem(t *testing.T) {
	m := sample()
	m.Text, m.Raw, m.MsgID = []byte("a\xff"), []byte("raw"), nil
	check := func(key Key, want string, present bool) {
		t.Helper()
		got, ok := AppendKey(nil, m, key)
		if string(got) != want || ok != present {
			t.Errorf("%s: got %q, %v", KeyNames[key], got, ok)
		}
	}
	check(KeyTimestamp, "1767225604003000000", true)
	check(KeyReceivedAt, "1767225605000000000", true)
	check(KeyFacility, "20", true)
	check(KeySeverity, "5", true)
	check(KeyHostname, "web1.example.com", true)
	check(KeyMsgID, "", false)
	check(KeyMessage, "a\xff", true)
	check(KeyMessageB64, "Yf8=", true)
	check(KeyRaw, "raw", true)
	check(KeyPeer, "192.0.2.1", true)
	check(KeyStructuredData, `{"cart@32473":{"items":"3"}}`, true)
	m.Structured, m.Timestamp, m.Text, m.Origin = nil, NoTime, nil, &Origin{}
	check(KeyStructuredData, "", false)
	check(KeyTimestamp, "", false)
	check(KeyMessage, "", true)
	check(KeyMessageB64, "", false)
	check(KeySource, "", false)
}

func TestRecordsAreWrittenAndReadWithoutAllocation(t *testing.T) {
	m := sample()
	var buf []byte
	if n := testing.AllocsPerRun(100, func() { buf = AppendRecord(buf[:0], m) }); n > 0 {
		t.Errorf("AppendRecord: %v allocations", n)
	}
	b := loose()
	var p RecordParser
	into := Message{Origin: m.Origin}
	fields, elements, params := make([]Field, 64), make([]Element, 64), make([]Param, 64)
	if n := testing.AllocsPerRun(100, func() {
		b.mem.fields.free, b.mem.elements.free, b.mem.params.free = fields, elements, params
		into.Fields = nil
		if err := p.Parse(&into, buf, b); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("Parse: %v allocations", n)
	}
}

// same compares messages as record JSON can tell them apart: nothing is nil, no
// bytes but the text's are beyond UTF-8, repeated parameters stand together.
var same = cmp.Options{cmpopts.IgnoreUnexported(Message{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Message{}, "Origin", "Raw")}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	check := func(edit func(m *Message)) {
		t.Helper()
		m := sample()
		edit(m)
		for _, strict := range []bool{true, false} {
			got := &Message{Origin: m.Origin, Received: m.Received}
			got.Timestamp = NoTime
			p := RecordParser{Strict: strict}
			if err := p.Parse(got, AppendRecord(nil, m), loose()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got, same); diff != "" {
				t.Error(diff)
			}
		}
	}
	check(func(m *Message) {})
	check(func(m *Message) { m.Text = []byte("\xff\xfe ok \ud7ff\U0010ffff \"\\/\b\f\n\r\t\x00\x7f") })
	check(func(m *Message) {
		m.Hostname, m.AppName, m.ProcID, m.MsgID, m.Structured, m.Fields = nil, nil, nil, nil, nil, nil
	})
	check(func(m *Message) { m.Timestamp = NoTime; m.Text = nil })
	check(func(m *Message) {
		m.Fields = []Field{{[]byte("a.b"), FloatValue(2)}, {[]byte(""), Value{Kind: Null}}, {[]byte("ä"), BoolValue(true)},
			{[]byte("s"), Value{Kind: String, Bytes: []byte("x")}}, {[]byte("n"), IntValue(math.MinInt64)},
			{[]byte("o"), Value{Kind: Object, Bytes: []byte(`{"b":[1,2.50,"\u00e9"],"a":{}}`)}}, {[]byte("l"), Value{Kind: Array, Bytes: []byte(`[]`)}}}
	})
	check(func(m *Message) {
		m.Structured = []Element{{ID: []byte("x"), Params: []Param{{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("a"), Value: []byte("")}}}, {ID: []byte("y")}}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(AppendRecord(nil, sample()))
	f.Add([]byte(`{"message":"a\ud800","x":[1e999,"\udc00",{"k":"\ud83d\ude00"}],"severity":"loud","message_b64":"/w=="}`))
	f.Add([]byte(`{"structured_data":{"a":{"b":["1","2"],"b":"3"},"a":{}},"hostname":5,"timestamp":17,"peer":"x"}`))
	f.Add([]byte(" {\"\xff\\u0000\" : \"\xff\" , \"\":[ 1 , { } ] } "))
	f.Add([]byte(strings.Repeat("[", 600)))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := loose()
		m := &Message{Origin: &Origin{}, Received: at}
		m.Timestamp = NoTime
		before := bytes.Clone(data)
		var p RecordParser
		err := p.Parse(m, data, b)
		if !bytes.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		var object map[string]any
		if jsonErr := json.Unmarshal(data, &object); jsonErr == nil && object != nil && err == ErrNotRecord && !deep(data) {
			t.Fatalf("refused an object: %v", err)
		}
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatal("accepted what is no JSON")
		}
		out := AppendRecord(nil, m)
		if err := json.Unmarshal(out, &object); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		again := &Message{Origin: &Origin{}, Received: at}
		strict := RecordParser{Strict: true}
		if err := strict.Parse(again, out, b); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if twice := AppendRecord(nil, again); !bytes.Equal(out, twice) {
			t.Fatalf("came back as something else:\n%s\n%s", out, twice)
		}
	})
}

// deep reports whether data may be nested deeper than weir goes.
func deep(data []byte) bool {
	return bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxDepth
}

func FuzzString(f *testing.F) {
	f.Add([]byte("a\"\\\n\x00\xff\xed\xa0\x80é\u2028\x7f"))
	f.Fuzz(func(t *testing.T, s []byte) {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, r := range string(s) { // one U+FFFD a bad byte
			want += string(r)
		}
		if got != want || got != string(appendValid(nil, s)) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	m := sample()
	m.Text = bytes.Repeat([]byte("0123456789abcdef"), 12)
	buf := AppendRecord(nil, m)
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			buf = AppendRecord(buf[:0], m)
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(buf)))
		var p RecordParser
		batch := loose()
		fields, elements, params := make([]Field, 64), make([]Element, 64), make([]Param, 64)
		into := Message{Origin: m.Origin}
		for b.Loop() {
			batch.mem.fields.free, batch.mem.elements.free, batch.mem.params.free = fields, elements, params
			into.Fields = nil
			if err := p.Parse(&into, buf, batch); err != nil {
				b.Fatal(err)
			}
		}
	})
}
