// Package sdk holds the sources of the SDKs, which `weir filter new` writes beside a new filter: whoever has weir needs
// neither this repository nor a network to start one. What it hands out is what lies here, so it is never stale.
package sdk

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed c/weir.h go/*.go rust/Cargo.toml rust/src assemblyscript/*.ts
var sources embed.FS

// Files returns the files of a language's SDK, in order, without its tests. It panics when there is no such SDK.
func Files(language string) []File {
	var files []File
	err := fs.WalkDir(sources, language, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		b, err := sources.ReadFile(name)
		files = append(files, File{Name: strings.TrimPrefix(path.Clean(name), language+"/"), Data: b})
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("BUG: the SDK for %s is not embedded: %v", language, err))
	}
	return files
}

// A File is a source file of an SDK.
type File struct {
	Name string // with slashes, below the SDK's folder
	Data []byte
}
