package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// cFlags are what docs/filters/c.md tells authors to use, and warnings as errors.
var cFlags = []string{"--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-Wl,-z,stack-size=65536,--stack-first,--strip-debug",
	"-Wall", "-Wextra", "-Werror", "-I", "filters/sdk/c"}

// tool runs a compiler from the top of the repository. A compiler that is not installed skips the test: make test
// installs all of them.
func tool(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// buildC compiles a C or C++ source, given from the top of the repository.
func buildC(t *testing.T, source string, flags ...string) (module string) {
	t.Helper()
	module = filepath.Join(t.TempDir(), "guest.wasm")
	tool(t, nil, "clang-14", append(append(append([]string{}, cFlags...), flags...), "-o", module, source)...)
	return module
}

// buildGo compiles a Go package, given from the top of the repository.
func buildGo(t *testing.T, pkg string) (module string) {
	t.Helper()
	module = filepath.Join(t.TempDir(), "guest.wasm")
	tool(t, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-buildmode=c-shared", "-ldflags=-w", "-o", module, "./"+pkg)
	return module
}

// rustFlags are what docs/filters/rust.md tells authors to use, and warnings as errors. Debian's compiler is named by its
// place: one of rustup's, with targets of its own, may come first.
const rustc = "/usr/bin/rustc"

var rustFlags = []string{"--edition=2021", "--target=wasm32-unknown-unknown", "-Copt-level=2", "-Cpanic=abort", "-Dwarnings"}

// buildRust compiles a Rust source, given from the top of the repository, and the SDK with it.
func buildRust(t *testing.T, source string) (module string) {
	t.Helper()
	dir := t.TempDir()
	sdk := filepath.Join(dir, "libweir.rlib")
	tool(t, nil, rustc, append(rustFlags, "--crate-type=rlib", "--crate-name=weir", "-o", sdk, "filters/sdk/rust/src/lib.rs")...)
	module = filepath.Join(dir, "guest.wasm")
	tool(t, nil, rustc, append(rustFlags, "--crate-type=cdylib", "-Cstrip=debuginfo", "-Clinker=wasm-ld-14", "-Clink-arg=-zstack-size=65536",
		"--extern=weir="+sdk, "-o", module, source)...)
	return module
}

// asc is where `make deps` puts AssemblyScript's compiler, from the top of the repository.
const asc = "filters/sdk/assemblyscript/node_modules/.bin/asc"

// buildAS compiles an AssemblyScript source, given from the top of the repository.
func buildAS(t *testing.T, source string) (module string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, asc)); err != nil {
		t.Skip("AssemblyScript is not installed: npm ci --prefix filters/sdk/assemblyscript")
	}
	module = filepath.Join(t.TempDir(), "guest.wasm")
	tool(t, nil, "node", asc, source, "-O3", "--debug", "--runtime", "incremental", "-o", module)
	return module
}

// buildWAT assembles WebAssembly text.
func buildWAT(t *testing.T, text string) (module string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "guest.wat")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	module = filepath.Join(dir, "guest.wasm")
	tool(t, nil, "wat2wasm", "-o", module, source)
	return module
}

var buildCommand = regexp.MustCompile("(?s)## Build\n.*?```sh\n(.+?)\n```")

// buildByReadme runs the command of a README's Build section and returns the module that it makes.
func buildByReadme(t *testing.T, readme string) (module string) {
	t.Helper()
	found := buildCommand.FindStringSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no Build section with a command")
	}
	command := found[1]
	fields := strings.Fields(command)
	for i, f := range fields {
		if f == "-o" && i+1 < len(fields) {
			module = filepath.Join(t.TempDir(), fields[i+1])
			command = strings.Replace(command, "-o "+fields[i+1], "-o "+module, 1)
		}
	}
	if module == "" {
		t.Fatalf("the Build command names no output with -o: %s", command)
	}
	for _, f := range fields { // the compiler is the first word that is no variable
		if !strings.Contains(f, "=") {
			if _, err := exec.LookPath(f); err != nil {
				t.Skipf("%s is not installed", f)
			}
			break
		}
	}
	tool(t, nil, "sh", "-c", command)
	return module
}
