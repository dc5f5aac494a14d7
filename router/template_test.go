package router

import (
	"strings"
	"testing"
	"time"
)

func templateMessage() *Message {
	m := &Message{Origin: &Origin{Source: "edge", Peer: "192.0.2.7"}, Received: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()}
	m.Timestamp, m.Severity = time.Date(2026, 3, 9, 14, 5, 6, 700e6, time.UTC).UnixNano(), 3
	m.Hostname, m.Text = []byte("web1"), []byte("hello")
	m.Structured = []Element{{ID: []byte("a@1.2"), Params: []Param{{Name: []byte("k"), Value: []byte("v")}}}}
	m.Fields = []Field{{Name: []byte("user.id"), Value: IntValue(7)}, {Name: []byte("none"), Value: Value{Kind: Null}}}
	return m
}

func TestTemplate(t *testing.T) {
	m := templateMessage()
	check := func(in, want string) {
		t.Helper()
		p, err := ParseTemplate(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			return
		}
		if got := string(p.Append(nil, m)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	check("", "")
	check("a$$b", "a$b")
	check("$${hostname}", "${hostname}")
	check("${hostname}: ${message}!", "web1: hello!")
	check("[${app_name}]", "[]")
	check("[${app_name:-none}]", "[none]")
	check("[${fields.none:-a:-b}]", "[a:-b]")
	check("${severity} ${fields.user.id} ${sd.a@1.2.k} ${source} ${peer}", "3 7 v edge 192.0.2.7")
	check("${fields}", `{"user.id":7,"none":null}`)
	check("${structured_data} ${sd.a@1.2.x}", `{"a@1.2":{"k":"v"}} `)
	check("${timestamp}", "2026-03-09T14:05:06.7Z")
	check("${timestamp:%Y_%m_%d}", "2026_03_09")
	check("${received_at:%H:%M:%S %j %e %b %a %u %y %% %s}", "03:04:05 002  2 Jan Fri 5 26 % 1767323045")
	check("${timestamp:%G-W%V %F %T %A %B}", "2026-W11 2026-03-09 14:05:06 Monday March")
	check("[${tag:-none}]", "[none]")
	m.ProcID = []byte("12")
	check("${tag}", "")
	m.AppName = []byte("sshd")
	check("${tag}:", "sshd[12]:")
	m.ProcID = []byte{}
	check("${tag}: ${message}", "sshd: hello")
	m.Timestamp = NoTime
	check("${timestamp:%Y:-undated}", "undated")
}

func TestTemplateMistakes(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		if _, err := ParseTemplate(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	check("a $5", "a $ at character 3")
	check("a${hostname", "the ${ at character 2 is not closed")
	check("${host}", "hostname?")
	check("${user}", "fields.user")
	check("${hostname:%Y}", "hostname is not a time")
	check("${timestamp:%Q}", "no conversion %Q")
	check("${timestamp:%Y%}", "a single %")
	check("${}", "none of the message's keys")
	check("${fields.}", "none of the message's keys")
	check("${sd.a.}", "none of the message's keys")
}

func TestTemplateAllocatesNothing(t *testing.T) {
	m := templateMessage()
	p, err := ParseTemplate("${hostname}/${timestamp:%Y_%m_%d}/${fields.user.id}/${app_name:-none}")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf = p.Append(buf[:0], m) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTemplateOfNoValuesIsConstant(t *testing.T) {
	check := func(in, want string, is bool) {
		t.Helper()
		p, err := ParseTemplate(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := p.Constant(); got != want || ok != is {
			t.Errorf("%s: %q %v", in, got, ok)
		}
	}
	check("", "", true)
	check("lo$$gs", "lo$gs", true)
	check("logs_${hostname}", "", false)
}
