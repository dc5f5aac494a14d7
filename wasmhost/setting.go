package wasmhost

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weirlog/weir/wasmhost/meter"
)

// A SettingError says by which setting of a filter it cannot be loaded. Those that
// are found together are joined (errors.Join).
type SettingError struct {
	Setting string // its key, such as "module"; "fs.0.path" for one that is deeper
	Err     error
	Hint    string // the way out; may be empty
}

func (e *SettingError) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Err, e.Hint)
}

func (e *SettingError) Unwrap() error { return e.Err }

// refusedModule tells what the meter says of a file, for people who gave the file.
func refusedModule(module string, file []byte, r *meter.Refused) error {
	switch {
	case r.What == "memory" && r.Remedy != "":
		return &SettingError{"memory", fmt.Errorf("%s: %s", module, r.Reason), r.Remedy}
	case r.What == "module":
		if what, remedy := otherFile(module, file); what != "" {
			return &SettingError{"module", fmt.Errorf("%s is no WebAssembly module: it is %s", module, what), cmp.Or(r.Remedy, remedy, "the .wasm file that the compiler made")}
		}
		return &SettingError{"module", fmt.Errorf("%s: %s", module, r.Reason), r.Remedy}
	}
	at := &meter.Refused{Offset: r.Offset, Function: r.Function, What: r.What, Reason: r.Reason}
	return &SettingError{"module", fmt.Errorf("%s: %w", module, at), r.Remedy}
}

// sources are languages by the ends of files' names.
var sources = map[string]string{".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".go": "Go", ".rs": "Rust", ".ts": "AssemblyScript", ".js": "JavaScript", ".py": "Python", ".lua": "Lua"}

// otherFile says what a file is that does not begin as modules do, with a way out of its own where there is one; "" when that
// cannot be told.
func otherFile(name string, file []byte) (what, remedy string) {
	begins := func(with ...string) bool {
		return slices.ContainsFunc(with, func(s string) bool { return bytes.HasPrefix(file, []byte(s)) })
	}
	text := bytes.TrimLeft(file[:min(len(file), 512)], " \t\r\n")
	language := sources[filepath.Ext(name)]
	switch {
	case len(file) == 0:
		return "empty", ""
	case begins("\x00asm", "\x00aot"):
		return "", ""
	case bytes.HasPrefix(text, []byte("(module")) || bytes.HasPrefix(text, []byte("(;")) || bytes.HasPrefix(text, []byte(";;")):
		return "WebAssembly text", ""
	case language != "":
		return "source text in " + language, "compile it: weir filter build"
	case bytes.HasPrefix(text, []byte("<")):
		return "an HTML or XML page", ""
	case begins("\x7fELF"):
		return "a program for this machine's processor", ""
	case begins("\x1f\x8b", "\x28\xb5\x2f\xfd", "PK\x03\x04"):
		return "a compressed file", "unpack it"
	case begins("!<arch>"):
		return "a library, not linked", ""
	case begins("version https://git-lfs"):
		return "a pointer of Git LFS, in place of the file", "git lfs pull"
	case !bytes.ContainsRune(text, 0):
		return "text", ""
	}
	return "", ""
}
