package toolchain

import "fmt"

var wat = language{
	name:   "wat",
	source: "@NAME@.wat",
	marks:  "*.wat",
	needs:  "`wat2wasm` of the WebAssembly Binary Toolkit (Debian: `apt install wabt`)",
	owns:   func(dir string) bool { return len(sources(dir, ".wat")) > 0 },
	ready:  func(f finder) error { _, err := f.wat2wasm(); return err },
	build:  buildWAT,
}

// buildWAT assembles the one .wat file of the folder.
func buildWAT(b *building) error {
	found := sources(b.dir, ".wat")
	if len(found) != 1 {
		return fmt.Errorf("%d .wat files, and a module is made of one", len(found))
	}
	assembler, err := b.tools.wat2wasm()
	if err != nil {
		return err
	}
	return b.run(nil, assembler, "--debug-names", "-o", b.module, found[0])
}

func (f finder) wat2wasm() (path string, err error) {
	if path = f.named("wat2wasm"); path == "" {
		return "", &Missing{"there is no wat2wasm, which assembles WebAssembly text", "Debian, Ubuntu: apt install wabt"}
	}
	return path, nil
}
