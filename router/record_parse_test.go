package router

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reread parses in over base and returns the record that comes out, without
// what is the same in all: received_at.
func reread(t *testing.T, p *RecordParser, base *Message, in string) (string, error) {
	t.Helper()
	m := *base
	m.Received = at
	if err := p.Parse(&m, []byte(in), loose()); err != nil {
		if diff := cmp.Diff(AppendRecord(nil, base), AppendRecord(nil, &m)); diff != "" {
			t.Errorf("%s: changed the message although it failed: %s", in, diff)
		}
		return "", err
	}
	return strings.Replace(string(AppendRecord(nil, &m)), `"received_at":"2026-01-01T00:00:05Z",`, "", 1), nil
}

func plainMessage() *Message {
	m := &Message{Origin: &Origin{}, Received: at}
	m.Timestamp, m.Facility, m.Severity = NoTime, 1, 5
	return m
}

func TestForeignRecordsKeepWhatDoesNotFit(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		got, err := reread(t, new(RecordParser), plainMessage(), in)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	check(`{}`, `{"facility":1,"severity":5,"message":""}`)
	check(` { "a" : 1 , "b" : [ 1 , { "x" : "y z" } ] } `, `{"facility":1,"severity":5,"message":"","a":1,"b":[1,{"x":"y z"}]}`)
	check(`{"message":"m","a":1,"a":"x","message":"n"}`, `{"facility":1,"severity":5,"message":"n","a":"x"}`)
	check(`{"severity":9}`, `{"facility":1,"severity":5,"message":"","severity_":9}`)
	check(`{"severity":"loud","facility":2.5}`, `{"facility":1,"severity":5,"message":"","severity_":"loud","facility_":2.5}`)
	check(`{"severity":"ERROR","facility":"local0"}`, `{"facility":16,"severity":3,"message":""}`)
	check(`{"severity":null,"hostname":null,"x":null}`, `{"facility":1,"severity":5,"message":"","x":null}`)
	check(`{"timestamp":1767225605}`, `{"facility":1,"severity":5,"message":"","timestamp_":1767225605}`)
	check(`{"timestamp":"1767225605"}`, `{"facility":1,"severity":5,"message":"","timestamp_":"1767225605"}`)
	check(`{"timestamp":"2026-01-01T01:00:05+01:00"}`, `{"timestamp":"2026-01-01T00:00:05Z","facility":1,"severity":5,"message":""}`)
	check(`{"hostname":{"name":"x"},"message":["a"]}`, `{"facility":1,"severity":5,"message":"","hostname_":{"name":"x"},"message_":["a"]}`)
	check(`{"proc_id":8710,"message":true}`, `{"facility":1,"severity":5,"proc_id":"8710","message":"","message_":true}`)
	check(`{"structured_data":{"a":{"b":1}}}`, `{"facility":1,"severity":5,"message":"","structured_data_":{"a":{"b":1}}}`)
	check(`{"structured_data":{"a b":{}}}`, `{"facility":1,"severity":5,"message":"","structured_data_":{"a b":{}}}`)
	check(`{"structured_data":"x"}`, `{"facility":1,"severity":5,"message":"","structured_data_":"x"}`)
	check(`{"structured_data":{"a":{"b":"1","c":["2","3"],"b":"4"},"d":{},"a2":{"x":[]}}}`,
		`{"facility":1,"severity":5,"structured_data":{"a":{"c":["2","3"],"b":"4"},"d":{},"a2":{}},"message":""}`)
	check(`{"structured_data":{"a":{"b":"1"},"a":{"c":"2"}}}`, `{"facility":1,"severity":5,"structured_data":{"a":{"c":"2"}},"message":""}`)
	check(`{"source":"payments","raw":"r"}`, `{"facility":1,"severity":5,"message":"","raw_":"r","source_":"payments"}`)
	check(`{"source":"edge","received_at":"2020-01-01T00:00:00Z","listener":"l","peer":"p"}`, `{"facility":1,"severity":5,"message":""}`)
	check(`{"received_at":5}`, `{"facility":1,"severity":5,"message":"","received_at_":5}`)
	check(`{"big":18446744073709551616,"max":9223372036854775807,"zero":-0,"huge":1e999,"list":[1e999]}`,
		`{"facility":1,"severity":5,"message":"","big":18446744073709552000.0,"max":9223372036854775807,"zero":0,"huge":"1e999","list":["1e999"]}`)
	check(`{"s":"\ud83d\ude00\ud800\u0041\/","o":["\udc00x\ud83d\ude00"]}`,
		`{"facility":1,"severity":5,"message":"","s":"😀`+"\ufffd"+`A/","o":["\ufffdx\ud83d\ude00"]}`)
	check("{\"a\xff\\u0000\":\"b\xff\",\"o\":[\"c\xff\"]}",
		"{\"facility\":1,\"severity\":5,\"message\":\"\",\"a\ufffd\ufffd\":\"b\ufffd\",\"o\":[\"c\ufffd\"]}")
	check("{\"message\":\"caf\xe9\"}", `{"facility":1,"severity":5,"message":"caf`+"\ufffd"+`","message_b64":"Y2Fm6Q=="}`)
}

func TestForeignRecordsLeaveTheRestOfTheMessage(t *testing.T) {
	got, err := reread(t, new(RecordParser), sample(), `{"msg_id":"X","hostname":null,"more":1,"user_id":8}`)
	want := `{"timestamp":"2026-01-01T00:00:04.003Z","facility":20,"severity":5,"app_name":"shopd","proc_id":"8710","msg_id":"X",` +
		`"structured_data":{"cart@32473":{"items":"3"}},"message":"checkout done",` +
		`"source":"edge","listener":"udp://127.0.0.1:5514","peer":"192.0.2.1","user_id":8,"more":1}`
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestStrictRecordsReplaceAllOrNothing(t *testing.T) {
	strict := &RecordParser{Strict: true, MaxValue: 70 << 10}
	origin := `"source":"edge","listener":"udp://127.0.0.1:5514","peer":"192.0.2.1"`
	check := func(in, want string) {
		t.Helper()
		got, err := reread(t, strict, sample(), in)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
	check(`{}`, `{"facility":1,"severity":5,"message":"",`+origin+`}`)
	check(`{"source":1,"peer":"x","raw":"y","received_at":"z","a":2}`, `{"facility":1,"severity":5,"message":"",`+origin+`,"a":2}`)
	refuse := func(in string, want error) {
		t.Helper()
		if _, err := reread(t, strict, sample(), in); !errors.Is(err, want) {
			t.Errorf("%.60s: got %v, want %v", in, err, want)
		}
	}
	refuse(`{"message":true}`, ErrWrongType)
	refuse(`{"severity":9}`, ErrInvalid)
	refuse(`{"timestamp":"x"}`, ErrInvalid)
	refuse(`{"timestamp":17}`, ErrInvalid)
	refuse(`{"structured_data":[]}`, ErrWrongType)
	refuse(`{"structured_data":{"a=b":{}}}`, ErrInvalid)
	refuse(`{"message_b64":"x"}`, ErrInvalid)
	refuse(`{"a\u0000":1}`, ErrInvalid)
	refuse("{\"\xff\":1}", ErrInvalid)
	refuse(`{"a":1e999}`, ErrInvalid)
	refuse(`{"a":[1e999]}`, ErrInvalid)
	refuse(`{"hostname":"`+strings.Repeat("x", MaxHeader+1)+`"}`, ErrTooLong)
	refuse(`{"a":"`+strings.Repeat("x", 71<<10)+`"}`, ErrTooLong)
	refuse(`{"`+strings.Repeat("x", MaxKey+1)+`":1}`, ErrTooLong)
	refuse(many(MaxFields+1), ErrTooMany)
	refuse(`{"structured_data":{"a":`+many(MaxParams+1)+`}}`, ErrWrongType)
	refuse(`{"structured_data":{"a":`+strings.ReplaceAll(many(MaxParams+1), ":1", `:"1"`)+`}}`, ErrTooMany)
	if _, err := reread(t, strict, sample(), many(MaxFields)); err != nil {
		t.Error(err)
	}
}

// many is an object with n members.
func many(n int) string {
	s := []byte("{")
	for i := range n {
		s = append(append(append(s, `"k`...), strconv.Itoa(i)...), `":1,`...)
	}
	s[len(s)-1] = '}'
	return string(s)
}

func TestOriginalBytesCountWhileTheTextIsUnchanged(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		for _, strict := range []bool{true, false} {
			m := plainMessage()
			p := RecordParser{Strict: strict}
			if err := p.Parse(m, []byte(in), loose()); err != nil || string(m.Text) != want {
				t.Errorf("%s: got %q, %v", in, m.Text, err)
			}
		}
	}
	check(`{"message_b64":"Yf8="}`, "a\xff")
	check(`{"message_b64":"Yf8=","message":"a`+"\ufffd"+`"}`, "a\xff")
	check(`{"message":"a\ufffd","message_b64":"Yf8="}`, "a\xff")
	check(`{"message":"b\ufffd","message_b64":"Yf8="}`, "b\ufffd")
	check(`{"message":null,"message_b64":"YQ=="}`, "a")
	check(`{"message":"a","message_b64":null}`, "a")
	check(`{"message":"","message_b64":"YQ=="}`, "")
}

func TestWhatIsNoObjectIsNoRecord(t *testing.T) {
	for _, in := range []string{``, `x`, `[]`, `"a"`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{"a":1}x`, `{"a":1}{}`, `{'a':1}`,
		`{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1e}`, `{"a":NaN}`, `{"a":nul}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":{"b"}}`,
		`{"a":[}`, `{"a":[1}}`, `{"a":{]}`, "{\"a\":\"\n\"}", `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"`, `{"a":"\`, "\ufeff{}",
		`{"a":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`} {
		if err := new(RecordParser).Parse(plainMessage(), []byte(in), loose()); err != ErrNotRecord {
			t.Errorf("%.40s: got %v", in, err)
		}
	}
	in := `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`
	if err := new(RecordParser).Parse(plainMessage(), []byte(in), loose()); err != nil {
		t.Error(err)
	}
}

func TestSetFollowsTheTypeOfTheKey(t *testing.T) {
	text := func(s string) Value { return Value{Kind: String, Bytes: []byte(s)} }
	check := func(key Key, v Value, want string, wantErr error) {
		t.Helper()
		m := sample()
		err := m.Set(key, v, loose())
		got, _ := AppendKey(nil, m, key)
		if err != wantErr || err == nil && string(got) != want {
			t.Errorf("%s: got %q, %v", KeyNames[key], got, err)
		}
	}
	check(KeySeverity, text("4"), "4", nil)
	check(KeySeverity, text("panic"), "0", nil)
	check(KeySeverity, text("8"), "", ErrInvalid)
	check(KeySeverity, IntValue(-1), "", ErrInvalid)
	check(KeySeverity, BoolValue(true), "", ErrWrongType)
	check(KeySeverity, Value{Kind: Null}, "", ErrNotPermitted)
	check(KeyFacility, text("authpriv"), "10", nil)
	check(KeyTimestamp, text("1767225605000000001"), "1767225605000000001", nil)
	check(KeyTimestamp, text("2026-01-01T00:00:05Z"), "1767225605000000000", nil)
	check(KeyTimestamp, text("-1"), "-1", nil)
	check(KeyTimestamp, text("soon"), "", ErrInvalid)
	check(KeyTimestamp, text("9223372036854775808"), "", ErrInvalid)
	check(KeyTimestamp, IntValue(NoTime), "", ErrInvalid)
	check(KeyTimestamp, Value{Kind: Null}, "", nil)
	check(KeyHostname, IntValue(-5), "-5", nil)
	check(KeyHostname, FloatValue(1.5), "1.5", nil)
	check(KeyHostname, text(""), "", nil)
	check(KeyHostname, Value{Kind: Array}, "", ErrWrongType)
	check(KeyMessage, Value{Kind: Null}, "", nil)
	check(KeyPeer, text("x"), "", ErrNotPermitted)
}

func TestValuesAreReadWithTheirTypes(t *testing.T) {
	check := func(in string, kind Kind, want string, wantErr error) {
		t.Helper()
		v, err := new(RecordParser).ParseValue([]byte(in), loose())
		if err != wantErr || err == nil && (v.Kind != kind || string(AppendText(nil, v)) != want) {
			t.Errorf("%s: got %v %q, %v", in, v.Kind, AppendText(nil, v), err)
		}
	}
	check(` "a\n" `, String, "a\n", nil)
	check(`7`, Int, "7", nil)
	check(`7e0`, Float, "7.0", nil)
	check(`true`, Bool, "true", nil)
	check(`null`, Null, "null", nil)
	check(`[ 1, 2 ]`, Array, "[1,2]", nil)
	check(`{"b":1,"a":2}`, Object, `{"b":1,"a":2}`, nil)
	check(`{} x`, Object, "", ErrInvalid)
	check(``, Null, "", ErrInvalid)
}
