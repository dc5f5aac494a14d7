package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

func TestOriginsAreShownBehindValues(t *testing.T) {
	files(t, map[string]string{
		"a.yaml": `x-l: &listen [tcp://a, "udp://${env:WORD}"]
memory: ${env:SIZE}
sources:
  edge:
    listen: *listen
    wait: 1s
    format: ${env:NOPE:-raw}
`,
		"b.yaml": `state_dir: ${file:secret}/x
sources: {b: {listen: [tcp://b]}}
stores:
  db:
    password: ${file:secret}
    path: |
      a
      b
    columns:
      host: hostname
      on: {from: x, null_if: "a # b"}
    options: {mask: "#", token: geheim, deep: ["${env:WORD}"]}
`,
		"secret": "geheim\n",
	})
	s := &sample{}
	d := Load(s, sampleOptions, "a.yaml", "b.yaml")
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := d.ShowOrigin(&out, s, "(built-in)"); err != nil {
		t.Fatal(err)
	}
	want := `memory: 1MiB                  # a.yaml:2, env SIZE
state_dir: ${file:secret}/x   # b.yaml:1, file secret
sources:
  edge:                       # a.yaml:4
    listen:                   # a.yaml:5, *listen of line 1
      - tcp://a               # a.yaml:1
      - "udp://${env:WORD}"   # a.yaml:1, env WORD
    max_message: 64KiB        # default
    idle_timeout: off         # default
    wait: 1s                  # a.yaml:6
    trusted: false            # default
    max_connections: 1000     # default
    port: 0                   # default
    ratio: 0                  # default
    format: ${env:NOPE:-raw}  # a.yaml:7, env NOPE is not set
  b:                          # b.yaml:2
    listen:                   # b.yaml:2
      - tcp://b               # b.yaml:2
    max_message: 64KiB        # default
    idle_timeout: off         # default
    trusted: false            # default
    max_connections: 1000     # default
    port: 0                   # default
    ratio: 0                  # default
    format: auto              # default
stores:
  db:                         # b.yaml:4
    flush_lines: 0            # default
    path: |                   # b.yaml:6
      a
      b
    password: ${file:secret}  # b.yaml:5, file secret
    columns:                  # b.yaml:9
      host: hostname          # b.yaml:10
      on:                     # b.yaml:11
        from: x               # b.yaml:11
        null_if: 'a # b'      # b.yaml:11
    options: {mask: "#", token: '***', deep: ["${env:WORD}"]}  # b.yaml:12; env WORD
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(out.String(), "geheim") {
		t.Error("a secret is shown")
	}
}

func TestWhatIsBuiltInIsSaidToBe(t *testing.T) {
	os.Unsetenv("NOPE")
	s := &sample{Memory: 5}
	d := Parse(s, sampleOptions, "(built-in)", []byte("state_dir: x\n"))
	var out strings.Builder
	if err := d.ShowOrigin(&out, s, "(built-in)"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("memory: 5B    # default\nstate_dir: x  # built-in\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

// sameBut says whether what is shown with origins is the same YAML as without.
func sameBut(t *testing.T, d *Document, s any) {
	t.Helper()
	var plain, origins strings.Builder
	if err := d.Show(&plain, s); err != nil {
		t.Fatal(err)
	}
	if err := d.ShowOrigin(&origins, s, ""); err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := yaml.Unmarshal([]byte(plain.String()), &a); err != nil {
		return // keys twice, in what is free: TestWhatIsShownMeansTheSame
	}
	if err := yaml.Unmarshal([]byte(origins.String()), &b); err != nil {
		t.Fatalf("%v in\n%s", err, origins.String())
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("%s\n%s", diff, origins.String())
	}
}

func TestOriginsAreOnlyComments(t *testing.T) {
	for _, text := range []string{
		"state_dir: 'a\n\n  b # c'\n", "state_dir: \"a\\nb # c\"\n", "state_dir: >\n  a\n  b\n\n  c\n", "state_dir: |2-\n    a\n   b\n", "state_dir: a\n  b\n",
		"stores: {db: {options: {a: 'x\n\n # y', b: [[], {}, [{}]], ? c : \"d\\n\"}}}", "stores: {db: {options: {a: |\n x\n}}}", "stores:\n  db:\n    options:\n    - - a\n      - |\n        b\n        c\n    - {d: e}\n",
		"stores:\n  ? \"a\\nb\"\n  : options: x\n", "state_dir: \"\\n a\\n\"\n", "state_dir: \" \\n\\n \"\n", "stores: {db: {options: ['${env:A\nB:-}', '${file:a\n\nb']}}\n",
	} {
		s := &sample{}
		d := Parse(s, sampleOptions, "we\nir.yaml", []byte(text))
		if d.Err() == nil {
			sameBut(t, d, s)
		}
	}
}
