//go:build wasip1

// redact-patterns hides what regular expressions find, everywhere in a message:
//
//	login of bob@example.com from 192.0.2.7   ->   login of [email] from [ipv4]
//
// README.md beside this file has the settings. What it cannot inspect or cannot write is a failure, never kept.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	weir "github.com/weirlog/weir/filters/sdk/go"
)

func init() {
	weir.OnStart(configure)
	weir.Handle(redact)
}

func main() {}

// header are the message's own keys that carry a sender's text.
var header = []string{"message", "hostname", "app_name", "proc_id", "msg_id"}

// refused are the keys that fields: cannot hide.
var refused = []string{"timestamp", "facility", "severity", "received_at", "structured_data", "raw", "source", "listener", "peer", "message_b64"}

var buf []byte // keeps its memory from message to message

func redact(m weir.Message) weir.Verdict {
	for _, key := range settings.Fields {
		if t := m.Type(key); t == weir.TypeAbsent || t == weir.TypeNull {
			continue
		}
		buf, _ = m.Append(buf[:0], key)
		if err := m.SetBytes(key, hide(nil, "field", buf)); err != nil {
			return weir.Fail(fmt.Sprintf("redact-patterns: %s: %v", key, err))
		}
	}
	for _, key := range header {
		if err := text(m, key); err != nil {
			return weir.Fail(fmt.Sprintf("redact-patterns: %s: %v", key, err))
		}
	}
	for key := range m.Fields() {
		if slices.Contains(settings.Fields, key) || slices.Contains(settings.Leave, key) {
			continue
		}
		var err error
		switch m.Type(key) {
		case weir.TypeString, weir.TypeBytes, weir.TypeInt, weir.TypeFloat:
			err = text(m, key)
		case weir.TypeArray, weir.TypeObject:
			err = nested(m, key)
		}
		if err != nil {
			return weir.Fail(fmt.Sprintf("redact-patterns: %s: %v", key, err))
		}
	}
	if err := structuredData(m); err != nil {
		return weir.Fail(fmt.Sprintf("redact-patterns: structured_data: %v", err))
	}
	return weir.Keep
}

// text redacts a text, or a number, which becomes a text when something was found in it.
func text(m weir.Message, key string) error {
	var ok bool
	if buf, ok = m.Append(buf[:0], key); !ok {
		return nil
	}
	if clean, found := inspect(buf); found {
		return m.SetBytes(key, clean)
	}
	return nil
}

// nested redacts the strings and numbers inside of an array or object. Names of members stay.
func nested(m weir.Message, key string) error {
	buf, _ = m.Append(buf[:0], key)
	clean, found, err := inside(buf)
	if err != nil || !found {
		return err
	}
	return m.SetJSON(key, clean)
}

// inside returns JSON with its strings and numbers redacted, and whether there was anything to redact.
func inside(in []byte) (out []byte, found bool, err error) {
	out = make([]byte, 0, len(in)+64)
	for i := 0; i < len(in); {
		from := i
		switch c := in[i]; {
		case c == '"':
			for i++; in[i] != '"'; i++ {
				if in[i] == '\\' {
					i++
				}
			}
			i++
			if i < len(in) && in[i] == ':' { // a name; the JSON is compact
				break
			}
			var s string
			if err := json.Unmarshal(in[from:i], &s); err != nil {
				return nil, false, err
			}
			if clean, ok := inspect([]byte(s)); ok {
				found = true
				if out, err = appendString(out, clean); err != nil {
					return nil, false, err
				}
				continue
			}
		case c == '-' || c >= '0' && c <= '9':
			for i < len(in) && !bytes.ContainsRune([]byte(",]}"), rune(in[i])) {
				i++
			}
			if clean, ok := inspect(in[from:i]); ok {
				found = true
				if out, err = appendString(out, clean); err != nil {
					return nil, false, err
				}
				continue
			}
		default:
			i++
		}
		out = append(out, in[from:i]...)
	}
	return out, found, nil
}

func appendString(out, s []byte) ([]byte, error) {
	quoted, err := json.Marshal(string(s))
	return append(out, quoted...), err
}

// structuredData redacts the parameters. Several of one name become one, with commas between, when one has something.
func structuredData(m weir.Message) error {
	var ok bool
	if buf, ok = m.Append(buf[:0], "structured_data"); !ok {
		return nil
	}
	var elements map[string]map[string]json.RawMessage
	if err := json.Unmarshal(buf, &elements); err != nil {
		return err
	}
	for id, params := range elements {
		for name, value := range params {
			whole, _ := m.Param(id, name)
			if value[0] == '[' {
				var several []string
				if err := json.Unmarshal(value, &several); err != nil {
					return err
				}
				var joined []byte
				for i, one := range several {
					if i > 0 {
						joined = append(joined, ',')
					}
					joined = append(joined, one...)
				}
				whole = string(joined)
			}
			if slices.Contains(settings.Leave, name) {
				continue
			}
			clean, found := inspect([]byte(whole))
			if slices.Contains(settings.Fields, name) {
				clean, found = hide(nil, "field", []byte(whole)), true
			}
			if !found {
				continue
			}
			if err := m.SetParam(id, name, string(clean)); err != nil {
				return err
			}
		}
	}
	return nil
}
