//go:build wasip1

// json-fields turns a message whose text is a JSON object into fields:
//
//	{"event":"login","user":{"id":7}}   ->   event, user
//
// README.md beside this file has the settings.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	weir "github.com/weirlog/weir/filters/sdk/go"
)

func init() {
	weir.OnStart(configure)
	weir.Handle(expand)
}

func main() {}

var settings struct {
	Prefix string            `json:"prefix"` // before each field's name
	Text   []string          `json:"text"`   // the first of these members becomes the message
	Rename map[string]string `json:"rename"` // member → key
	Strict bool              `json:"strict"` // reject what starts like an object and is none
}

func configure() error {
	d := json.NewDecoder(bytes.NewReader(weir.Config()))
	d.DisallowUnknownFields()
	if err := d.Decode(&settings); err != nil {
		return fmt.Errorf("json-fields: %w", err)
	}
	return nil
}

// buf keeps its memory from message to message.
var buf []byte

func expand(m weir.Message) weir.Verdict {
	var ok bool
	buf, ok = m.Append(buf[:0], "message")
	text := bytes.TrimSpace(buf)
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("@cee:"))) // the cookie of "structured syslog" senders
	if !ok || len(text) == 0 || text[0] != '{' {
		return weir.Keep
	}
	if !json.Valid(text) {
		if settings.Strict {
			return weir.RejectFor("json-fields: the text starts like a JSON object and is none")
		}
		return weir.Keep
	}
	members := membersOf(text)
	if err := apply(m, members); err != nil {
		return weir.Fail(err.Error())
	}
	return weir.Keep
}

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of a valid object in order.
func membersOf(text []byte) []member {
	d := json.NewDecoder(bytes.NewReader(text))
	d.Token()
	var all []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return all
		}
		one := member{name: name.(string)}
		if d.Decode(&one.value) != nil {
			return all
		}
		all = append(all, one)
	}
	return all
}

func apply(m weir.Message, members []member) error {
	body := textMember(members)
	for i, one := range members {
		key := settings.Prefix + one.name
		if to, ok := settings.Rename[one.name]; ok {
			key = to
		}
		if i == body {
			key = "message"
		} else if key == "message" {
			key = "message_" // only a member named in text: replaces the text
		}
		err := m.SetJSON(key, one.value)
		if errors.Is(err, weir.ErrTooMany) {
			return fmt.Errorf("json-fields: %s: %w", key, err)
		}
		if err != nil { // one of the message's own keys, whose kind of value this is not
			err = m.SetJSON(key+"_", one.value)
		}
		if err != nil {
			weir.Log(weir.LevelWarn, "json-fields: left out "+key+": "+err.Error())
		}
	}
	return nil
}

// textMember returns the index of the member that becomes the message, or -1.
func textMember(members []member) int {
	for _, want := range settings.Text {
		for i, one := range members {
			if one.name == want && one.value[0] == '"' {
				return i
			}
		}
	}
	return -1
}
