package config

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever the place, the quoted line and its caret fit into the terminal, and the caret is under the mistake.
func TestQuotedLinesFitTheTerminal(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		for blanks := range 150 {
			text := "{ right: " + strings.Repeat(" ", blanks) + "wrong" + strings.Repeat(" ", 100) + "}"
			var into struct {
				Right int `yaml:"right"`
			}
			said := strings.Split(Parse(&into, Options{Width: width}, "f", []byte(text)).Err().Error(), "\n")
			line, caret := said[1], said[2]
			if n := utf8.RuneCountInString(line); n > width || len(caret) > width {
				t.Errorf("%d columns: lines of %d and %d", width, n, len(caret))
			}
			if at := []rune(line)[len(caret)-1:]; !strings.HasPrefix(string(at), "wrong"[:min(5, len(at))]) {
				t.Errorf("%d columns: the caret is under %q", width, string(at))
			}
		}
	}
}
