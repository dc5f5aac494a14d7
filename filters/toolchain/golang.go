package toolchain

var golang = language{
	name:     "go",
	source:   "main.go",
	marks:    "*.go",
	settings: true,
	needs:    "[Go](https://go.dev/dl/) 1.24 or later",
	owns:     func(dir string) bool { return len(sources(dir, ".go")) > 0 },
	sdk:      func() []file { return sdkFiles("go", "weir/") },
	ready:    func(f finder) error { _, err := f.golang(); return err },
	build:    buildGo,
}

// buildGo builds the package in the folder, in whatever module it is. Names of functions stay, for the stacks of
// faults; -w leaves out the rest of what debuggers want.
func buildGo(b *building) error {
	tool, err := b.tools.golang()
	if err != nil {
		return err
	}
	return b.run([]string{"GOOS=wasip1", "GOARCH=wasm"}, tool, "build", "-buildmode=c-shared", "-ldflags=-w", "-o", b.module, ".")
}

func (f finder) golang() (path string, err error) {
	if path = f.named("go"); path == "" {
		return "", &Missing{"there is no go, which compiles Go", "https://go.dev/dl/, 1.24 or later (Debian 13: apt install golang; Debian 12's is too old)"}
	}
	return path, nil
}
