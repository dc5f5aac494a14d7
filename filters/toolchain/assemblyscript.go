package toolchain

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

var assemblyscript = language{
	name:     "assemblyscript",
	source:   "@NAME@.ts",
	marks:    "package.json with assemblyscript",
	settings: true,
	needs:    "Node.js 20 or later (Debian: `apt install nodejs npm`)",
	before:   []string{"npm install"},
	owns: func(dir string) bool {
		b, err := os.ReadFile(filepath.Join(dir, "package.json"))
		return err == nil && bytes.Contains(b, []byte("assemblyscript"))
	},
	sdk:   func() []file { return sdkFiles("assemblyscript", "weir/") },
	ready: func(f finder) error { _, err := f.node(); return err },
	build: buildAssemblyScript,
}

// buildAssemblyScript compiles assembly/index.ts, which is where asinit puts it, or the one .ts file of the folder.
// Names of functions stay (--debug), for the stacks of faults.
func buildAssemblyScript(b *building) error {
	entry := "assembly/index.ts"
	if !exists(b.dir, entry) {
		found := slices.DeleteFunc(sources(b.dir, ".ts"), func(name string) bool { return name == "weir.ts" })
		if len(found) != 1 {
			return fmt.Errorf("neither assembly/index.ts nor one .ts file, but %d", len(found))
		}
		entry = found[0]
	}
	if _, err := b.tools.node(); err != nil {
		return err
	}
	compiler := b.asc()
	if compiler == "" {
		return &Missing{"the AssemblyScript compiler is not installed", "In the folder: npm install"}
	}
	return b.run(nil, compiler, entry, "-o", b.module, "--optimizeLevel", "3", "--runtime", "incremental", "--debug")
}

// asc returns the compiler of the folder, or of one above it, as node would find it; else one on the path.
func (b *building) asc() string {
	for dir := b.dir; ; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, "node_modules/.bin/asc"); runs(path) {
			return path
		}
		if dir == filepath.Dir(dir) {
			return b.tools.named("asc")
		}
	}
}

func (f finder) node() (path string, err error) {
	if path = f.named("node"); path == "" {
		return "", &Missing{"there is no node, which runs the AssemblyScript compiler", "Debian, Ubuntu: apt install nodejs npm, then in the folder: npm install"}
	}
	return path, nil
}
