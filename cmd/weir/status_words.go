package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// digits is a number with its thousands apart; from ten million on with the letter of its size.
func digits(n uint64) string {
	switch {
	case n >= 10_000_000_000_000:
		return short(float64(n)/1e12) + "T"
	case n >= 10_000_000_000:
		return short(float64(n)/1e9) + "G"
	case n >= 10_000_000:
		return short(float64(n)/1e6) + "M"
	}
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// short has three digits or more.
func short(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return digits(uint64(x + 0.5))
}

// perSecond is a rate.
func perSecond(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.01:
		return "<0.01"
	case x < 9.995:
		return fmt.Sprintf("%.2g", x)
	}
	return digits(uint64(x + 0.5))
}

// bytesOf is about a size.
func bytesOf(n uint64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x := float64(n) / 1024
	for len(units) > 1 && x >= 1023.5 {
		x, units = x/1024, units[1:]
	}
	if x < 99.95 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") + " " + units[0]
	}
	return fmt.Sprintf("%.0f %s", x, units[0])
}

// span is about how long something takes, in one unit.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", max(0, d).Seconds()), ".0") + " s"
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func percent(part, whole uint64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", float64(part)/float64(whole)*100)
}

// wrap breaks text at spaces into lines of at most width columns; a word that is longer stands alone.
func wrap(text string, width int) (lines []string) {
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case line == "":
			line, used = word, n
		case used+1+n > width:
			lines = append(lines, line)
			line, used = word, n
		default:
			line, used = line+" "+word, used+1+n
		}
	}
	return append(lines, line)
}
