//go:build wasip1

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"time"

	weir "github.com/weirlog/weir/filters/sdk/go"
)

// What the file was when it was read.
var (
	size     int64
	modified time.Time
	ticks    int
)

// read makes the table out of the file; when it cannot, the table stays as it was.
func read() error {
	info, err := os.Stat(settings.File)
	if err != nil {
		return fmt.Errorf("enrich: file: %w (grant it with fs:)", err)
	}
	text, err := os.ReadFile(settings.File)
	if err != nil {
		return fmt.Errorf("enrich: file: %w", err)
	}
	all, err := rows(text)
	if err != nil {
		return fmt.Errorf("enrich: file: %s: %w", settings.File, err)
	}
	table, size, modified = all, info.Size(), info.ModTime()
	return nil
}

// rows reads CSV: the first row names the columns, the first column is looked up. Empty cells add nothing.
func rows(text []byte) (map[string][]addition, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.Comment, r.TrimLeadingSpace = '#', true
	all, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || len(all[0]) < 2 {
		return nil, fmt.Errorf("the first row must name at least two columns")
	}
	names, found := all[0], map[string][]addition{}
	for i, name := range names[1:] {
		if name == "" {
			return nil, fmt.Errorf("column %d has no name", i+2)
		}
	}
	for _, row := range all[1:] {
		key := fold(row[0])
		if _, twice := found[key]; twice {
			return nil, fmt.Errorf("%s is there twice", row[0])
		}
		var adds []addition
		for i, cell := range row[1:] {
			if cell != "" {
				value, err := json.Marshal(cell)
				if err != nil {
					return nil, err
				}
				adds = append(adds, addition{names[i+1], value})
			}
		}
		found[key] = adds
	}
	return found, nil
}

// look reads the file again when it has changed. One that is broken is told once, and the table stays.
func look() {
	if ticks++; settings.File == "" || ticks%settings.Check != 0 {
		return
	}
	info, err := os.Stat(settings.File)
	if err == nil && info.Size() == size && info.ModTime().Equal(modified) {
		return
	}
	if err == nil {
		size, modified = info.Size(), info.ModTime()
	}
	if err := read(); err != nil {
		weir.Log(weir.LevelWarn, err.Error()+"; the table stays as it was")
	}
}
