package wasmhost

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/router/config"
)

func TestAGuestSeesWhatItIsGrantedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("data/sites.csv", "plant-7")
	write("secret", "not for guests")
	write("work/old", "x")
	single := write("etc/map.csv", "a,b")
	for link, to := range map[string]string{"data/out": "../secret", "data/in": "sites.csv"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "data/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	g, log := loadFile(t, "files.c", func(c *Config) {
		c.FS = []Grant{{Path: filepath.Join(dir, "data"), As: "/data"}, {Path: filepath.Join(dir, "work"), As: "/scratch", Write: true},
			{Path: single, As: "/maps/devices.csv"}}
		c.Env = config.Map[config.Secret]{{Name: "REGION", Value: config.PlainSecret("eu")}}
	})
	do := func(what, want string) {
		t.Helper()
		if got := apply(t, g.Filter(0), what)[0]; got != "keep "+want && !(want == "error" && strings.HasPrefix(got, "keep error: ")) {
			t.Errorf("%s: %q, want %q\n%s", what, got, want, log)
		}
	}
	do("r /data/sites.csv", "plant-7")
	do("r /data/in", "plant-7")
	do("r /data/out", "error")
	do("r /data/../secret", "error")
	do("r /secret", "error")
	do("r /data/pipe", "error")
	do("r /maps/devices.csv", "a,b")
	do("l /maps", "devices.csv ")
	do("r /maps/map.csv", "error")
	do("w /data/new", "error")
	do("w /data/sites.csv", "error")
	do("u /data/sites.csv", "error")
	do("w /maps/devices.csv", "error")
	do("w /scratch/new", "ok")
	do("r /scratch/new", "written")
	do("m /scratch/sub", "ok")
	do("s /scratch/etc", "error")
	do("u /scratch/old", "ok")
	do("u /scratch/../data/sites.csv", "error")
	do("e REGION", "eu")
	do("e HOME", "unset")
	do("o /data/sites.csv", "29 open") // and the two directories and one list that it was given
	do("o /data/sites.csv", "0 open")
	apply(t, g.Filter(0), "t") // what a fault leaves open is closed
	do("o /data/sites.csv", "29 open")
}

func TestReadingForEverIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	g, _ := loadFile(t, "files.c", func(c *Config) { c.FS = []Grant{{Path: path, As: "/d/f"}} })
	if got := apply(t, g.Filter(0), "f /d/f")[0]; got != "reject(time) f /d/f" {
		t.Error(got)
	}
}

func TestGrantsThatAreNoneAreRefused(t *testing.T) {
	h, _ := open(t)
	module := wasmOf(t, filepath.Join("testdata", "files.c"))
	_, err := h.Load(t.Context(), "f", settings(module, func(c *Config) { c.FS = []Grant{{Path: "nowhere", As: "/data"}} }))
	if err == nil || !strings.Contains(err.Error(), "fs: stat nowhere") {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "d/link")
	if err := os.Symlink("../real", link); err != nil {
		t.Fatal(err)
	}
	_, err = h.Load(t.Context(), "f", settings(module, func(c *Config) { c.FS = []Grant{{Path: link, As: "/data/f"}} }))
	if err == nil || !strings.Contains(err.Error(), "grant what it leads to") {
		t.Error(err)
	}
	c := settings(module, func(c *Config) {
		c.FS = []Grant{{Path: "x", As: "data"}, {Path: "x", As: "/a"}, {Path: "y", As: "/a/"}}
	})
	if p := c.Check(); len(p) != 2 {
		t.Errorf("%v", p)
	}
}

func TestAManifestSaysWhatItsModuleWants(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "m.wasm"), wasmOf(t, filepath.Join("testdata", "config.c")))
	manifest := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, _ := open(t)
	try := func(want string, edit ...func(*Config)) {
		t.Helper()
		g, err := h.Load(t.Context(), "f", settings(dir, edit...))
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			return
		}
		defer g.Close(t.Context())
		if got := apply(t, g.Filter(0), "x")[0]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	try("without a weir.manifest.yaml")
	manifest("name: conf\nversion: 1.0.0\ndefaults: {a: 1, b: '${file:/etc/passwd}'}\n")
	try(`keep {"a":1,"b":"${file:/etc/passwd}"}`)
	try(`keep {"a":2,"b":"${file:/etc/passwd}","c":3}`, func(c *Config) { c.Config = []byte(`{"a":2,"c":3}`) })
	odd := filepath.Join(t.TempDir(), "a[1")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m.wasm", ManifestName} {
		put(t, filepath.Join(odd, name), filepath.Join(dir, name))
	}
	try(`keep {"a":1,"b":"${file:/etc/passwd}"}`, func(c *Config) { c.Module = odd })
	manifest("wants: {fs: [{as: /data}, {as: /scratch, write: true}], env: [REGION]}\n")
	try("wants the directory or file /data, which is not granted")
	granted := func(write bool) func(*Config) {
		return func(c *Config) {
			c.FS = []Grant{{Path: dir, As: "/data/"}, {Path: dir, As: "/scratch", Write: write}}
			c.Env = config.Map[config.Secret]{{Name: "REGION"}}
		}
	}
	try("wants to write to /scratch", granted(false))
	try("keep {}", granted(true))
	manifest(`name: "conf\nrefused no"` + "\n")
	if r, err := h.Inspect(settings(dir)); err != nil || r.Name != `"conf\nrefused no"` {
		t.Errorf("%q, %v", r.Name, err)
	}
	manifest("abi: wier\n")
	try("abi: wier is none of weir, ")
	manifest("want: {}\n")
	try(`weir.manifest.yaml:1:1: unknown key "want"`)
	manifest("module: ../m.wasm\n")
	try("is not the name of a file beside it")
	put(t, filepath.Join(dir, "n.wasm"), filepath.Join(dir, "m.wasm"))
	manifest("name: two\n")
	try("there are 2 .wasm files")
	manifest("module: n.wasm\n")
	try("keep {}")
}

// What a stranger hands out may hold more than files.
func TestAPipeInPlaceOfAFileIsRefused(t *testing.T) {
	check := func(module string) {
		t.Helper()
		c := settings(module)
		done := make(chan error, 1)
		go func() { _, err := c.open(); done <- err }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it waits for somebody to write into it")
		}
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, ManifestName)
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	check(pipe)
	check(dir)
}
