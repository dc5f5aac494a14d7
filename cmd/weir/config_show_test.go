package main

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router/config"
)

// shownAs is what config show prints of settings that were loaded from a text.
func shownAs(t *testing.T, text string) (*settings, string) {
	t.Helper()
	s := newSettings()
	doc := config.Parse(s, config.Options{NotYet: notYet}, "weir.yaml", []byte(text))
	if err := doc.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s.resolve(doc)
	s.complete()
	var plain, origins strings.Builder
	if err := doc.Show(&plain, s); err != nil {
		t.Fatal(err)
	}
	if err := doc.ShowOrigin(&origins, s, builtinName); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain.String(), stripOrigins(origins.String())); diff != "" {
		t.Errorf("with --origin more than comments is different: %s", diff)
	}
	return s, plain.String()
}

// stripOrigins takes the comments off that ShowOrigin adds.
func stripOrigins(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if i := strings.LastIndex(line, "  # "); i >= 0 {
			line = strings.TrimRight(line[:i], " ") + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// What config show prints is read as the same settings, and shown as the same text: the example, the built-in
// configuration, and all that the manual shows.
func TestWhatConfigShowPrintsMeansTheSame(t *testing.T) {
	t.Setenv("WEIR_PASSWORD", "secret")
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, text string) {
		first, shown := shownAs(t, text)
		again, second := shownAs(t, shown)
		if diff := cmp.Diff(shown, second); diff != "" {
			t.Errorf("it is shown in another way when it is read again: %s", diff)
		}
		same := cmp.Options{
			cmp.Exporter(func(reflect.Type) bool { return true }),
			cmp.Comparer(func(a, b config.Place) bool { return true }),
			cmp.Comparer(func(a, b config.Secret) bool { // one is hidden in what is shown
				x, _ := a.Reveal()
				y, _ := b.Reveal()
				return x == y || strings.Contains(x+y, "***")
			}),
			cmp.Comparer(func(a, b *kind) bool { return a == b }),
		}
		if diff := cmp.Diff(first, again, same); diff != "" {
			t.Errorf("%s\nof\n%s", diff, shown)
		}
	}
	t.Run("example", func(t *testing.T) { check(t, string(example)) })
	t.Run("built-in", func(t *testing.T) { check(t, builtin) })
	blocks := 0
	for name, block := range configurationsInTheManual(t) {
		blocks++
		t.Run(name, func(t *testing.T) { check(t, block) })
	}
	if blocks < 55 {
		t.Errorf("%d blocks were found", blocks)
	}
}

// notShown are the settings that have a default which config show does not print, each with the reason.
var notShown = map[string]string{
	"sources.*.receive_buffer":          "the system's, which weir does not know before it opens the socket",
	"sources.*.owner":                   "whoever runs weir",
	"sources.*.group":                   "whoever runs weir",
	"filters.*.sha256":                  "any module will do",
	"filters.*.abi":                     "what the module looks like, which a look at it tells: weir filter inspect",
	"filters.*.function":                "what the abi names",
	"filters.*.fs":                      "nothing",
	"filters.*.env":                     "nothing",
	"filters.*.recycle":                 "never, for which there is no word",
	"filters.*.recycle.messages":        "never, for which there is no word",
	"filters.*.recycle.memory":          "never, for which there is no word",
	"destinations.*.columns":            "weir's own table, which columns: would replace",
	"destinations.*.add_columns":        "none",
	"destinations.*.full_text":          "none",
	"destinations.*.password":           "none",
	"destinations.*.sslrootcert":        "libpq's file if it is there, else the system's",
	"destinations.*.sslcert":            "none",
	"destinations.*.sslkey":             "none",
	"destinations.*.sslpassword":        "none",
	"destinations.*.partition":          "the table is not divided",
	"destinations.*.create_suffix":      "nothing",
	"destinations.*.on_conflict":        "such rows are dead letters, for which there is no word",
	"routes.*.match":                    "all messages",
	"routes.*.else":                     "false, which says nothing",
	"destinations.*.session_statements": "none",
}

// Every setting that has a default is in what config show prints of a configuration without it, or there is a reason.
func TestEveryDefaultIsShownOrHasAReason(t *testing.T) {
	_, shown := shownAs(t, `
admin: {}
sources: { a: { listen: [unixgram:///a] }, b: { listen: [udp://127.0.0.1:1] } }
filters: { f: { module: stock:redact } }
destinations:
  lite: { sqlite: a.db, buffer: { disk: 1GiB } }
  many: { postgres: host=db.example, table: "l_${app_name}" }
  file: { file: a }
  out: { stdout: {} }
  none: { discard: {} }
routes: { r: { from: [a, b], filters: [f], to: [lite, many, file, out, none] } }
`)
	here := map[string]bool{}
	eachSetting(t, []byte(shown), func(path string, _ int) { here[path] = true })
	all := settingsOf(t)
	if len(all) < 130 {
		t.Fatalf("%d settings", len(all))
	}
	for path := range all {
		switch _, excused := notShown[path]; {
		case here[path] && excused:
			t.Errorf("%s is shown: the reason why not can go", path)
		case !here[path] && !excused && !excusedAbove(path):
			t.Errorf("%s is not shown, and there is no reason", path)
		}
	}
	for path := range notShown {
		if !all[path] {
			t.Errorf("there is a reason for %s, which is no setting", path)
		}
	}
}

// excusedAbove says whether a setting is part of one that is not shown.
func excusedAbove(path string) bool {
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path, '.') {
		path = path[:i]
		if _, ok := notShown[path]; ok {
			return true
		}
	}
	return false
}

// In a file elsewhere, paths are shown as they are used from here.
func TestPathsAreShownAsTheyAreUsed(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("DIR", "filters")
	t.Setenv("SOCK", "a.sock")
	for name, text := range map[string]string{
		"conf/secret": "geheim\n", "conf/ca.pem": "",
		"conf/weir.yaml": `state_dir: state
admin: { listen: "unix://${env:SOCK}" }
sources: { a: { listen: ["unix://b.sock", "unix://${env:SOCK}", "tcp://127.0.0.1:1"] } }
filters:
  f: { module: "${env:DIR}/f.wasm", config: { key: "${file:secret}", dollar: "$${file:secret}" } }
  g: { module: g.wasm, fs: [{ path: tables, as: /tables }], env: { A: "${file:secret}" } }
  h: { module: stock:redact }
destinations: { d: { postgres: host=db, password: "${file:secret}", session_statements: ["SET a = '${file:/abs}'"] } }
routes: { r: { from: [a], filters: [f, g, h], to: [d] } }
`} {
		if err := os.MkdirAll("conf", 0o755); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "/abs", os.DevNull)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if code := execute([]string{"config", "show", "-c", "conf/weir.yaml"}, nil, &out, &out); code != exitFine {
		t.Fatal(out.String())
	}
	for _, want := range []string{
		"state_dir: conf/state\n", `listen: "unix://conf/${env:SOCK}"`, "- unix://conf/b.sock\n", `- "unix://conf/${env:SOCK}"`, "- tcp://127.0.0.1:1\n",
		`module: "conf/${env:DIR}/f.wasm"`, "module: conf/g.wasm\n", "path: conf/tables\n", "as: /tables\n", "module: stock:redact\n",
		`key: "${file:conf/secret}"`, `dollar: "$${file:secret}"`, "A: ${file:conf/secret}\n", "password: ${file:conf/secret}\n", "${file:" + os.DevNull + "}",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}

// What is shown stands where weir runs, not where the file was: the path of a socket in a match moves with that in listen.
func TestShownSocketsInMatchesAreThoseThatSourcesListenOn(t *testing.T) {
	for _, file := range []string{"conf/weir.yaml", "/etc/weir/weir.yaml", "weir.yaml"} {
		for _, match := range []string{"{listener: unix://run/weir.sock}", `{listener: [unix://run/weir.sock, "tcp*"]}`, "{not: {any: [{listener: [&l unix://run/weir.sock]}, {listener: *l}]}}", `{listener: "unix://${env:DIR}/weir.sock"}`} {
			text := "sources: { edge: { listen: [unix://run/weir.sock, tcp://127.0.0.1:5514] } }\ndestinations: { nowhere: { discard: {} } }\n" +
				"routes: { it: { from: [edge], to: [nowhere], match: " + match + " } }\n"
			read := func(file, text string) (*settings, *config.Document) {
				s := newSettings()
				doc := config.Parse(s, config.Options{Env: func(string) (string, bool) { return "run", true }}, file, []byte(text))
				s.wire(doc)
				if err := doc.Err(); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				s.resolve(doc)
				return s, doc
			}
			first, doc := read(file, text)
			var b strings.Builder
			if err := doc.Show(&b, first); err != nil {
				t.Fatal(err)
			}
			again, _ := read("weir.yaml", b.String())
			for i, s := range []*settings{first, again} {
				socket := s.Sources[0].Value.Listen[0]
				if got, want := s.routerConfig().Routes[0].Match.Matches(sent(t, "listener="+socket)), !strings.Contains(match, "not"); got != want {
					t.Errorf("%s, read %d times: %s takes from %s: %v\n%s", file, i+1, match, socket, got, b.String())
				}
			}
		}
	}
}
