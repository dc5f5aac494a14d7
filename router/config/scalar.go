package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// scalar decodes a single value: text, number, switch, size or time.
func (d *decoder) scalar(f *file, n *yaml.Node, path string, out reflect.Value, opt options) bool {
	want := wanted(out.Type())
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return d.fail(f, n, otherHint(n, path), "%s: want %s, got %s", words(path), want, describe(n))
	}
	text := n.Value
	if n.Tag == "!!str" {
		var ok bool
		if text, ok = d.expand(f, n, out.Type() == templateType); !ok || !d.noShell(f, n) {
			return false
		}
	}
	wrong := func(hint string) bool {
		if opt.word != "" {
			hint = opt.word + ", or " + hint
		}
		got := describe(n)
		if text != n.Value {
			got = fmt.Sprintf("what %s gives", got) // not the value: it may be a secret
		}
		return d.fail(f, n, hint, "%s: want %s, got %s", words(path), want, got)
	}
	if opt.off && n.Value == "off" {
		out.SetZero()
		return true
	}
	switch {
	case out.Type() == sizeType:
		size, hint := parseSize(text)
		if hint != "" {
			return wrong(opt.unitHint(hint, text, Size(out.Int()).String(), "GiB", "MiB", "KiB", "B"))
		}
		out.SetInt(int64(size))
	case out.Type() == durationType:
		t, hint := parseDuration(text)
		if hint != "" {
			return wrong(opt.unitHint(hint, text, TimeText(time.Duration(out.Int())), "d", "h", "m", "s"))
		}
		out.SetInt(int64(t))
	case out.Kind() == reflect.String:
		if n.Tag == "!!bool" {
			return wrong(strconv.Quote(n.Value))
		}
		out.SetString(text)
	case out.Kind() == reflect.Bool:
		switch text {
		case "true", "false":
			out.SetBool(text == "true")
		case "yes", "on", "Yes", "On", "True", "YES", "ON", "TRUE", "1":
			return wrong("true")
		default:
			return wrong("false")
		}
	case out.CanInt():
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil || out.OverflowInt(i) {
			hint := wholeHint(text, "")
			if hint == "" && out.Int() != 0 {
				hint = strconv.FormatInt(out.Int(), 10)
			}
			return wrong(hint)
		}
		if i == 0 && opt.some {
			return d.fail(f, n, "leave it out, or 1 and more", "%s: 0 is none", words(path))
		}
		out.SetInt(i)
	case out.CanUint():
		u, err := strconv.ParseUint(text, 10, 64)
		if err != nil || out.OverflowUint(u) {
			return wrong(wholeHint(text, fmt.Sprintf("0 to %d", uint64(math.MaxUint64)>>(64-out.Type().Bits()))))
		}
		out.SetUint(u)
	case out.CanFloat():
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return wrong("")
		}
		out.SetFloat(x)
	default:
		panic(fmt.Sprintf("BUG: no way to read a %s from a file", out.Type()))
	}
	return true
}

func wanted(t reflect.Type) string {
	switch {
	case t == sizeType:
		return "a size with its unit"
	case t == durationType:
		return "a time with its unit"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// wholeHint reads 5k, 1_000 and 1,000 for people; what is a number is out of bounds.
func wholeHint(text, bounds string) string {
	digits := strings.NewReplacer("_", "", ",", "").Replace(text)
	if n, err := strconv.Atoi(digits); err == nil {
		if digits == text {
			return bounds
		}
		return strconv.Itoa(n)
	}
	if n, err := strconv.Atoi(strings.TrimRight(digits, "kK")); err == nil {
		return strconv.Itoa(n * 1000)
	}
	if number, _ := splitUnit(digits); number != "" && number != digits && !strings.Contains(number, ".") {
		return number + ", without a unit"
	}
	return ""
}

// otherHint is the way out where a single value is wanted and something else, or nothing, is there.
func otherHint(n *yaml.Node, path string) string {
	switch {
	case n.Tag == "!!null":
		return "a value, or no " + last(path) + ": at all"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 1 && n.Content[0].Kind == yaml.ScalarNode:
		return n.Content[0].Value
	}
	return ""
}

// last is the key at the end of a path; for an item of a list, that of the list.
func last(path string) string {
	keys := strings.Split(strings.TrimSuffix(path, sep), sep)
	if _, err := strconv.Atoi(keys[len(keys)-1]); err == nil && len(keys) > 1 {
		return keys[len(keys)-2]
	}
	return keys[len(keys)-1]
}

// unitHint is the way out for a size or a time that could not be read: hint, or,
// for a number without its unit, the number with the units it may mean. What the
// setting holds by default says which comes first; standard is that with its unit, or 0.
// Without it the largest unit does: too long or too large loses nothing.
func (o options) unitHint(hint, text, standard string, units ...string) string {
	number, unit := splitUnit(text)
	_, err := strconv.ParseFloat(number, 64)
	zero, standardUnit := splitUnit(standard)
	given := zero != "0"
	if strings.Contains(number, ".") {
		units = slices.DeleteFunc(units, func(u string) bool { return u == "B" })
	}
	switch {
	case err != nil && given:
		hint = standard
	case err == nil && unit == "" && o.off && strings.Trim(number, "0.") == "":
		return "off"
	case err == nil && unit == "" && given && slices.Contains(units, "B") && len(number) > 3: // as large a number is one of bytes
		hint = number + "B (or KiB, MiB, GiB)"
	case err == nil && unit == "" && given:
		rest := slices.DeleteFunc(units, func(u string) bool { return u == standardUnit })
		hint = fmt.Sprintf("%s%s (or %s)", number, standardUnit, strings.Join(rest, ", "))
	case err == nil && unit == "":
		last := len(units) - 1
		hint = number + strings.Join(units[:last], ", "+number) + " or " + number + units[last]
	}
	if o.off {
		hint += ", or off"
	}
	return hint
}

var sizeUnits = map[string]float64{
	"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// parseSize reads 64KiB. When it cannot, hint is the way out.
func parseSize(text string) (size Size, hint string) {
	number, unit := splitUnit(text)
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, "1GiB, 64MiB"
	}
	if factor, ok := sizeUnits[unit]; ok {
		x *= factor
		if x > 1<<62 {
			return 0, "a smaller one"
		}
		if x != math.Trunc(x) {
			return 0, "whole bytes"
		}
		return Size(x), ""
	}
	for _, word := range []string{"kilo", "kibi", "mega", "mebi", "giga", "gibi"} {
		if strings.HasPrefix(strings.ToLower(unit), word) {
			unit = word[:1]
		}
	}
	switch strings.ToLower(unit) {
	case "":
		return 0, "a unit behind the number, as in 64KiB"
	case "k", "kb", "kib":
		return 0, fmt.Sprintf("%sKiB (1024 bytes) or %skB (1000)", number, number)
	case "m", "mb", "mib":
		return 0, number + "MiB or " + number + "MB"
	case "g", "gb", "gib":
		return 0, number + "GiB or " + number + "GB"
	case "b", "byte", "bytes":
		return 0, number + "B"
	}
	return 0, "one of the units B, kB, KiB, MB, MiB, GB, GiB"
}

// String writes the size with the largest unit that divides it.
func (s Size) String() string {
	text := strconv.FormatInt(int64(s), 10) + "B"
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"} { // the shortest of them
		if unit := Size(sizeUnits[u]); s >= unit && s%unit == 0 {
			if t := strconv.FormatInt(int64(s/unit), 10) + u; len(t) < len(text) {
				text = t
			}
		}
	}
	return text
}

// ParseSize reads a size as the file has it: for flags.
func ParseSize(text string) (Size, error) {
	s, hint := parseSize(text)
	if hint != "" {
		return 0, fmt.Errorf("want a size with its unit, got %s; try %s", text, hint)
	}
	return s, nil
}

var timeUnits = map[string]time.Duration{
	"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
	"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// parseDuration reads 1s, 1h30m, 30d. When it cannot, hint is the way out.
func parseDuration(text string) (sum time.Duration, hint string) {
	rest := text
	for first := true; first || rest != ""; first = false {
		number, unit := splitUnit(rest)
		end := strings.IndexFunc(unit, func(r rune) bool { return r >= '0' && r <= '9' })
		if end < 0 {
			end = len(unit)
		}
		rest, unit = unit[end:], unit[:end]
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, "1s, 500ms, 5m, 24h, 30d"
		}
		factor, ok := timeUnits[unit]
		switch {
		case ok:
		case unit == "" && !first:
			return 0, "a unit behind each number, as in 1h30m"
		case unit == "":
			return 0, "a unit behind the number, as in 30s"
		case strings.HasPrefix(unit, "msec") || strings.HasPrefix(unit, "milli"):
			return 0, number + "ms"
		case strings.HasPrefix(unit, "w"):
			return 0, strconv.FormatFloat(7*x, 'f', -1, 64) + "d"
		case strings.HasPrefix(unit, "month") || strings.HasPrefix(unit, "y"):
			return 0, "so many days, as in 30d or 365d"
		case strings.HasPrefix(unit, "sec"):
			return 0, number + "s"
		case strings.HasPrefix(unit, "min"):
			return 0, number + "m"
		case strings.HasPrefix(unit, "hour"):
			return 0, number + "h"
		case strings.HasPrefix(unit, "day"):
			return 0, number + "d"
		default:
			return 0, "one of the units ms, s, m, h, d"
		}
		if x*float64(factor)+float64(sum) > math.MaxInt64/2 {
			return 0, "a shorter one"
		}
		sum += time.Duration(x * float64(factor))
	}
	return sum, ""
}

// splitUnit parts "64 KiB" into its number and what follows; the number is not
// negative.
func splitUnit(s string) (number, unit string) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		i = len(s)
	}
	return s[:i], strings.TrimPrefix(s[i:], " ")
}

// TimeText writes a time as a file has it: 48h, 1s, 50ms.
func TimeText(t time.Duration) string {
	if t == 0 {
		return "0s"
	}
	for _, u := range []string{"d", "h", "m", "s", "ms"} {
		if unit := timeUnits[u]; t >= unit && t%unit == 0 {
			return strconv.FormatInt(int64(t/unit), 10) + u
		}
	}
	return strconv.FormatInt(t.Microseconds(), 10) + "us"
}
