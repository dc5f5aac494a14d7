//go:build wasip1

// enrich adds what a table knows about a message: which site a device is at, who owns a service.
//
//	table: {web1: {site: plant-7, rack: r2}}    hostname web1   ->   site: plant-7, rack: r2
//
// README.md beside this file has the settings.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	weir "github.com/weirlog/weir/filters/sdk/go"
)

func init() {
	weir.OnStart(configure)
	weir.OnTick(look)
	weir.Handle(enrich)
}

func main() {}

var settings struct {
	Key     string                     `json:"key"`     // whose value is looked up
	To      string                     `json:"to"`      // the field for a value that is no object
	Table   map[string]json.RawMessage `json:"table"`   // value → what is added
	File    string                     `json:"file"`    // a CSV file instead, as the guest sees it
	Check   int                        `json:"check"`   // seconds between looks at the file
	Default json.RawMessage            `json:"default"` // for a value that the table does not have
	Fold    bool                       `json:"fold"`    // upper and lower case are the same
	Replace bool                       `json:"replace"` // fields that are there already are replaced
}

// An addition is a field to set.
type addition struct {
	key   string
	value json.RawMessage
}

var (
	table    map[string][]addition
	fallback []addition
)

func configure() error {
	settings.Key, settings.To, settings.Check, settings.Replace = "hostname", "site", 10, true
	d := json.NewDecoder(bytes.NewReader(weir.Config()))
	d.DisallowUnknownFields()
	if err := d.Decode(&settings); err != nil {
		return fmt.Errorf("enrich: %w", err)
	}
	if (settings.Table == nil) == (settings.File == "") {
		return errors.New("enrich: one of table and file must be given")
	}
	if settings.Key == "" || settings.To == "" || settings.Check < 1 {
		return errors.New("enrich: key and to must be names, check at least 1")
	}
	var err error
	if settings.Default != nil {
		if fallback, err = additions(settings.Default); err != nil {
			return fmt.Errorf("enrich: default: %w", err)
		}
	}
	if settings.File != "" {
		return read()
	}
	table = make(map[string][]addition, len(settings.Table))
	for name, value := range settings.Table {
		key := fold(name)
		if _, twice := table[key]; twice {
			return fmt.Errorf("enrich: table: %s is there twice, in upper and lower case", name)
		}
		if table[key], err = additions(value); err != nil {
			return fmt.Errorf("enrich: table: %s: %w", name, err)
		}
	}
	settings.Table = nil // what is needed of it is in table
	return nil
}

// additions are the members of an object, in order, or the field To for any other value.
func additions(value json.RawMessage) ([]addition, error) {
	if value[0] != '{' {
		return []addition{{settings.To, value}}, nil
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.Token()
	var all []addition
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		one := addition{key: name.(string)}
		if err := d.Decode(&one.value); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func fold(s string) string {
	if settings.Fold {
		return strings.ToLower(s)
	}
	return s
}

func enrich(m weir.Message) weir.Verdict {
	value, ok := m.Get(settings.Key)
	if !ok {
		return weir.Keep
	}
	row, ok := table[fold(value)]
	if !ok {
		row = fallback
	}
	for _, one := range row {
		if !settings.Replace && m.Type(one.key) != weir.TypeAbsent {
			continue
		}
		if err := m.SetJSON(one.key, one.value); err != nil {
			return weir.Fail(fmt.Sprintf("enrich: %s: %v", one.key, err))
		}
	}
	return weir.Keep
}
