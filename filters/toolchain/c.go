package toolchain

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/filters/sdk"
)

var c = language{
	name:     "c",
	source:   "@NAME@.c",
	marks:    "*.c, *.cpp",
	settings: true,
	needs:    "clang 14 or later with its WebAssembly parts (Debian 12: `apt install clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32`)",
	owns:     func(dir string) bool { return len(sources(dir, cExtensions...)) > 0 },
	sdk:      func() []file { return sdkFiles("c", "") },
	ready:    func(f finder) error { _, _, err := f.clang(); return err },
	build:    buildC,
}

var cExtensions = []string{".c", ".cc", ".cpp", ".cxx"}

// buildC compiles all C or C++ files of the folder into one module.
func buildC(b *building) error {
	found := sources(b.dir, cExtensions...)
	clang, sysroot, err := b.tools.clang()
	if err != nil {
		return err
	}
	// A folder without the header gets the one of this weir.
	header := filepath.Dir(b.module)
	for _, f := range sdk.Files("c") {
		if err := os.WriteFile(filepath.Join(header, f.Name), f.Data, 0o600); err != nil {
			return err
		}
	}
	// --stack-first: an overflow traps. Names of functions stay, for the stacks of faults.
	args := []string{"--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-Wall", "-Wextra", "-fno-exceptions",
		"-Wl,-z,stack-size=65536,--stack-first,--strip-debug", "-I", b.dir, "-I", header, "-o", b.module}
	if sysroot != "" {
		args = append(args, "--sysroot="+sysroot)
	}
	return b.run(nil, clang, append(args, found...)...)
}

// clang returns a clang that makes WebAssembly, and its sysroot when it is not the usual one. What $WASI_SDK_PATH names
// comes first, then clang, then the newest clang-N.
func (f finder) clang() (path, sysroot string, err error) {
	if kit := os.Getenv("WASI_SDK_PATH"); kit != "" {
		if path = filepath.Join(kit, "bin", "clang"); runs(path) {
			return path, filepath.Join(kit, "share", "wasi-sysroot"), nil
		}
	}
	found := f.versions("clang")
	var first error
	for _, path := range found {
		missing := lacks(path)
		if missing == nil {
			return path, "", nil
		}
		if first == nil {
			first = missing
		}
	}
	if first != nil {
		return "", "", first
	}
	return "", "", &Missing{"there is no clang, which compiles C",
		"Debian 12: apt install clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32\nelsewhere: a WASI SDK, with WASI_SDK_PATH set to its folder"}
}

// lacks says what a clang needs to make WebAssembly and does not find; nil: nothing.
func lacks(clang string) error {
	version := strings.TrimPrefix(filepath.Base(clang), "clang")
	if version == "" {
		version = "-" + strings.SplitN(says(clang, "-dumpversion"), ".", 2)[0]
	}
	if !strings.Contains(says(clang, "-print-targets"), "wasm32") {
		return &Missing{clang + " does not know WebAssembly", "Debian, Ubuntu: apt install clang-14, or any later one"}
	}
	var what, packages []string
	need := func(there bool, name, pkg string) {
		if !there {
			what, packages = append(what, name), append(packages, pkg)
		}
	}
	target := "--target=wasm32-wasi"
	linker := filepath.IsAbs(says(clang, target, "-print-prog-name=wasm-ld")) || filepath.IsAbs(says(clang, target, "-print-prog-name=wasm-ld"+version))
	need(linker, "linker (wasm-ld)", "lld"+version)
	need(exists(says(clang, target, "-print-file-name=crt1-reactor.o")), "C library", "wasi-libc")
	need(exists(says(clang, target, "-rtlib=compiler-rt", "-print-libgcc-file-name")), "runtime", "libclang-rt"+version+"-dev-wasm32")
	if what == nil {
		return nil
	}
	return &Missing{clang + " has no " + strings.Join(what, " and no ") + " for WebAssembly", "Debian, Ubuntu: apt install " + strings.Join(packages, " ")}
}
