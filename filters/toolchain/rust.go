package toolchain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var rust = language{
	name:     "rust",
	source:   "src/lib.rs",
	marks:    "Cargo.toml",
	settings: true,
	needs:    "Rust 1.63 or later with the target wasm32-unknown-unknown (Debian 12: `apt install rustc cargo libstd-rust-dev-wasm32 lld-14`; rustup: `rustup target add wasm32-unknown-unknown`)",
	owns:     func(dir string) bool { return exists(dir, "Cargo.toml") },
	sdk:      func() []file { return sdkFiles("rust", "weir/") },
	ready:    func(f finder) error { _, err := f.rust(); return err },
	build:    buildRust,
}

const rustTarget = "wasm32-unknown-unknown"

// buildRust builds the crate in the folder.
func buildRust(b *building) error {
	kit, err := b.tools.rust()
	if err != nil {
		return err
	}
	env := []string{"RUSTC=" + kit.rustc}
	if kit.linker != "" {
		env = append(env, "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="+kit.linker)
	}
	var said bytes.Buffer
	err = b.runInto(&said, env, kit.cargo, "build", "--release", "--lib", "--target", rustTarget, "--message-format=json-render-diagnostics")
	if err != nil {
		return err
	}
	made := crateModule(&said)
	if made == "" {
		return errors.New("cargo made no module: Cargo.toml needs [lib] crate-type = [\"cdylib\"]")
	}
	module, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	return os.WriteFile(b.module, module, 0o600)
}

// crateModule returns the last module that cargo says it has made; the crates that it needs come before it.
func crateModule(said io.Reader) (module string) {
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadBytes('\n')
		var artifact struct{ Filenames []string }
		json.Unmarshal(line, &artifact) // other lines have none
		for _, name := range artifact.Filenames {
			if strings.HasSuffix(name, ".wasm") {
				module = name
			}
		}
		if err != nil {
			return module
		}
	}
}

// A rustKit is a rustc that makes WebAssembly, and what goes with it.
type rustKit struct {
	rustc, cargo string
	linker       string // "": it has its own
}

var llvmVersion = regexp.MustCompile(`LLVM version: ([0-9]+)`)

// rust returns the first rustc on the path that has the target; Debian's and rustup's are often side by side.
func (f finder) rust() (rustKit, error) {
	how := "Debian 12: apt install rustc cargo libstd-rust-dev-wasm32 lld-14\nelsewhere: https://rustup.rs, then: rustup target add " + rustTarget
	var seen []string
	for _, dir := range filepath.SplitList(f.path) {
		k := rustKit{rustc: filepath.Join(dir, "rustc"), cargo: filepath.Join(dir, "cargo")}
		if !filepath.IsAbs(dir) || !runs(k.rustc) {
			continue
		}
		seen = append(seen, k.rustc)
		library := says(k.rustc, "--print", "target-libdir", "--target", rustTarget)
		if found, _ := filepath.Glob(filepath.Join(library, "libcore-*.rlib")); library == "" || found == nil {
			continue
		}
		if !runs(k.cargo) {
			return k, &Missing{"there is no cargo beside " + k.rustc, "Debian, Ubuntu: apt install cargo"}
		}
		if own, _ := filepath.Glob(filepath.Join(says(k.rustc, "--print", "sysroot"), "lib/rustlib/*/bin/rust-lld")); own != nil {
			return k, nil
		}
		// The linker must be of the LLVM that made the standard library.
		version := llvmVersion.FindStringSubmatch(says(k.rustc, "-vV"))
		if version == nil {
			version = []string{"", "14"}
		}
		if k.linker = f.named("wasm-ld-" + version[1]); k.linker == "" {
			return k, &Missing{k.rustc + " has no linker for WebAssembly (wasm-ld-" + version[1] + ")", "Debian, Ubuntu: apt install lld-" + version[1]}
		}
		return k, nil
	}
	if seen == nil {
		return rustKit{}, &Missing{"there is no rustc, which compiles Rust", how}
	}
	return rustKit{}, &Missing{strings.Join(seen, " and ") + ": no standard library for " + rustTarget, how}
}
