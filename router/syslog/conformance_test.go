package syslog

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
)

type conformanceCase struct {
	ID, Note    string
	Input       []byte    `json:"input_b64"`
	ReceiveTime time.Time `json:"receive_time"`
	ReceiveTZ   string    `json:"receive_tz"`
	Expect      *struct {
		Facility, Severity uint8
		Timestamp          *time.Time
		Hostname           *string
		AppName            *string                   `json:"app_name"`
		ProcID             *string                   `json:"proc_id"`
		MsgID              *string                   `json:"msg_id"`
		Structured         map[string]map[string]any `json:"structured_data"`
		Message            *string
		MessageB64         *string `json:"message_b64"`
	}
}

func conformanceCases(t testing.TB) (cases []conformanceCase) {
	t.Helper()
	f, err := os.Open("testdata/syslog.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c conformanceCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

func TestWhatSendersPutOnTheWireIsRead(t *testing.T) {
	for _, c := range conformanceCases(t) {
		zone, err := time.LoadLocation(c.ReceiveTZ)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			var m Message
			p := Parser{Zone: zone}
			ok := p.Parse(&m, c.Input, c.ReceiveTime.UnixNano(), Heap{})
			if ok != (c.Expect != nil) {
				t.Fatalf("%s: message: %v", c.Note, ok)
			}
			if !ok {
				return
			}
			e := c.Expect
			want := map[string]any{"facility": e.Facility, "severity": e.Severity, "timestamp": NoTime, "sd": e.Structured,
				"host": e.Hostname, "app": e.AppName, "pid": e.ProcID, "msgid": e.MsgID}
			if e.Timestamp != nil {
				want["timestamp"] = e.Timestamp.UnixNano()
			}
			if e.Message != nil {
				want["text"] = *e.Message
			} else {
				b, err := base64.RawStdEncoding.DecodeString(trimPadding(*e.MessageB64))
				if err != nil {
					t.Fatal(err)
				}
				want["text"] = string(b)
			}
			got := map[string]any{"facility": m.Facility, "severity": m.Severity, "timestamp": m.Timestamp, "sd": sdMap(&m),
				"host": pointer(m.Hostname), "app": pointer(m.AppName), "pid": pointer(m.ProcID), "msgid": pointer(m.MsgID), "text": string(m.Text)}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s\n%q\n%s", c.Note, c.Input, d)
			}
		})
	}
}

func trimPadding(s string) string {
	for len(s) > 0 && s[len(s)-1] == '=' {
		s = s[:len(s)-1]
	}
	return s
}

func pointer(b []byte) *string {
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

// sdMap is structured data as the cases have it: repeated parameters are arrays.
func sdMap(m *Message) map[string]map[string]any {
	sd := map[string]map[string]any{}
	for _, e := range m.Structured {
		params := map[string]any{}
		for _, p := range e.Params {
			switch old := params[string(p.Name)].(type) {
			case nil:
				params[string(p.Name)] = string(p.Value)
			case string:
				params[string(p.Name)] = []any{old, string(p.Value)}
			case []any:
				params[string(p.Name)] = append(old, string(p.Value))
			}
		}
		sd[string(e.ID)] = params
	}
	return sd
}
