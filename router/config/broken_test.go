package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// sample is a file's worth of settings with every type that a kind may use.
type sample struct {
	Memory   Size           `yaml:"memory"`
	StateDir string         `yaml:"state_dir"`
	Sources  Map[source]    `yaml:"sources"`
	Stores   Map[store]     `yaml:"stores"`
	Routes   Map[sampleWay] `yaml:"routes"`
	Admin    *admin         `yaml:"admin"`
}

type admin struct {
	Listen string `yaml:"listen"`
}

type source struct {
	Listen      []string      `yaml:"listen,required"`
	MaxMessage  Size          `yaml:"max_message"`
	IdleTimeout time.Duration `yaml:"idle_timeout,off"`
	Wait        time.Duration `yaml:"wait"`
	Trusted     bool          `yaml:"trusted"`
	Connections int           `yaml:"max_connections"`
	Port        uint16        `yaml:"port"`
	Ratio       float64       `yaml:"ratio"`
	Format      string        `yaml:"format"`
}

func (s *source) Defaults() { s.MaxMessage, s.Format, s.Connections = 64<<10, "auto", 1000 }

func (s *source) Check() []Problem {
	bad := OneOf("format", s.Format, "auto", "rfc5424", "rfc3164", "json", "raw")
	for i, l := range s.Listen {
		if !strings.Contains(l, "://") {
			bad = append(bad, Problem{Path: fmt.Sprintf("listen.%d", i), What: "no scheme in " + l, Hint: "tcp://" + l})
		}
	}
	return bad
}

type store struct {
	Common   common          `yaml:",inline"`
	Path     string          `yaml:"path"`
	Password Secret          `yaml:"password"`
	URL      Secret          `yaml:"url"`
	Columns  Map[column]     `yaml:"columns"`
	Options  json.RawMessage `yaml:"options"`
}

type common struct {
	Lines int `yaml:"flush_lines"`
}

func (c common) Check() []Problem {
	if c.Lines < 0 {
		return []Problem{{Path: "flush_lines", What: fmt.Sprintf("%d rows make no transaction", c.Lines), Hint: "at least 1"}}
	}
	return nil
}

func (s store) Check() []Problem {
	bad := s.Common.Check()
	for _, c := range s.Columns {
		if c.Value.From == "" && c.Value.Template == "" {
			bad = append(bad, Problem{Path: "columns." + c.Name, What: "nothing fills this column", Hint: "from: message"})
		}
	}
	return bad
}

type column struct {
	From     string   `yaml:"from"`
	Template Template `yaml:"template"`
	Type     string   `yaml:"type"`
	NullIf   *string  `yaml:"null_if"`
}

func (c *column) UnmarshalConfig(v *Value) {
	if v.IsScalar() {
		v.Decode(&c.From)
		return
	}
	type plain column
	v.Decode((*plain)(c))
}

type sampleWay struct {
	From []string `yaml:"from,required"`
	To   []string `yaml:"to"`
}

var sampleOptions = Options{
	NotYet: []string{"routes.*.match", "stores.*.connections"},
	Env: func(name string) (string, bool) {
		v, ok := map[string]string{"SIZE": "1MiB", "EMPTY": "", "DOLLAR": "a$b", "WORD": "geheim"}[name]
		return v, ok
	},
}

var update = flag.Bool("update", false, "write what broken files say into testdata")

// TestBrokenFilesAreExplained loads every NAME.yaml of testdata/broken.txtar
// and compares all that is said with NAME.want.
func TestBrokenFilesAreExplained(t *testing.T) {
	path, _ := filepath.Abs("testdata/broken.txtar")
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	os.WriteFile("secret", []byte("geheim\n"), 0o600)
	want := map[string]string{}
	for _, f := range a.Files {
		want[f.Name] = string(f.Data)
	}
	var out []txtar.File
	for _, f := range a.Files {
		name, ok := strings.CutSuffix(f.Name, ".yaml")
		if !ok {
			continue
		}
		text := strings.ReplaceAll(string(f.Data), "→", "\t")
		got := "nothing\n"
		if err := Parse(&sample{}, sampleOptions, "weir.yaml", []byte(text)).Err(); err != nil {
			got = err.Error() + "\n"
		}
		out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(strings.ReplaceAll(got, "\t", "→"))})
		if got := strings.ReplaceAll(got, "\t", "→"); got != want[name+".want"] && !*update {
			t.Errorf("%s: (-want +got)\n%s", name, cmp.Diff(want[name+".want"], got))
		}
		if strings.Contains(got, "geheim") {
			t.Errorf("%s: a secret is shown:\n%s", name, got)
		}
	}
	if *update {
		a.Files = out
		os.WriteFile(path, txtar.Format(a), 0o644)
	}
}

// A wordy is a time or the word "batch".
type wordy time.Duration

func (w *wordy) UnmarshalConfig(v *Value) { v.Decode((*time.Duration)(w)) }
func (w wordy) String() string            { return "batch" }

func TestHintsAreOfTheSettingsKind(t *testing.T) {
	for text, want := range map[string]string{
		"keep: 90":    "try: 90d (or h, m, s), or off",
		"keep: 0":     "try: off",
		"keep: long":  "try: 30d, or off",
		"limit: 0":    "try: off",
		"limit: 14":   "try: 14d, 14h, 14m or 14s, or off",
		"size: 3":     "try: 3MiB (or GiB, KiB, B)",
		"size: lots":  "try: 64MiB",
		"sync: never": "try: batch, or 1s,",
		"lanes: 0":    "lanes: 0 is none",
	} {
		c := struct {
			Keep  time.Duration  `yaml:"keep,off"`
			Limit *time.Duration `yaml:"limit,off"`
			Size  Size           `yaml:"size"`
			Sync  wordy          `yaml:"sync"`
			Lanes int            `yaml:"lanes,some"`
		}{Keep: 30 * 24 * time.Hour, Size: 64 << 20}
		if err := Parse(&c, Options{}, "weir.yaml", []byte(text)).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
