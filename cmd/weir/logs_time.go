package main

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/weirlog/weir/router/config"
)

// clockForms are the forms of a time that say no zone; those without a date are of today.
var clockForms = []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", time.DateOnly}

// moment reads a time as a person types it: how long ago, or a time of the clock in
// the zone of now, or one that says its own.
func moment(text string, now time.Time) (time.Time, error) {
	word := strings.TrimSpace(text)
	year, month, day := now.Date()
	midnight := func(days int) time.Time { return time.Date(year, month, day+days, 0, 0, 0, 0, now.Location()) }
	switch strings.ToLower(word) {
	case "now":
		return now, nil
	case "today":
		return midnight(0), nil
	case "yesterday":
		return midnight(-1), nil
	}
	if t, err := time.Parse(time.RFC3339, strings.Replace(word, " ", "T", 1)); err == nil {
		return t, nil
	}
	for _, form := range clockForms {
		if t, err := time.ParseInLocation(form, word, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, form := range []string{"15:04:05.999999999", "15:04"} {
		if t, err := time.Parse(form, word); err == nil {
			return time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location()), nil
		}
	}
	ago, err := duration(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(word, "-"), " ago")))
	if err != nil {
		return now, errors.New("want how long ago (2h, 7d) or a time: 10:00, 2026-11-30, 2026-11-30 10:00, 2026-11-30T10:00:00Z, today, yesterday")
	}
	return now.Add(-ago), nil
}

var weeks = regexp.MustCompile(`^(\d{1,4})w$`)

// duration reads a time span as the configuration has them, or in weeks.
func duration(text string) (time.Duration, error) {
	if w := weeks.FindStringSubmatch(text); w != nil {
		n, err := strconv.Atoi(w[1])
		return time.Duration(n) * 7 * 24 * time.Hour, err
	}
	y, err := yaml.Marshal(map[string]string{"ago": text})
	if err != nil {
		return 0, err
	}
	var read struct {
		Ago time.Duration `yaml:"ago"`
	}
	err = config.Parse(&read, config.Options{}, "time", y).Err()
	return read.Ago, err
}
