package toolchain

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A finder finds programs.
type finder struct {
	path string // as in $PATH
}

// machine is what the one who types has.
var machine = finder{path: os.Getenv("PATH")}

// named returns where the program is; "" when there is none.
func (f finder) named(name string) string {
	for _, dir := range filepath.SplitList(f.path) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && runs(path) {
			return path
		}
	}
	return ""
}

// versions returns the programs name, and name-14 or the like: first the one without a number, then the newest.
func (f finder) versions(name string) []string {
	numbered := regexp.MustCompile("^" + regexp.QuoteMeta(name) + "-([0-9]+)$")
	newest := map[int]string{}
	for _, dir := range filepath.SplitList(f.path) {
		entries, err := os.ReadDir(dir)
		if err != nil || !filepath.IsAbs(dir) {
			continue
		}
		for _, e := range entries {
			if m := numbered.FindStringSubmatch(e.Name()); m != nil {
				n, _ := strconv.Atoi(m[1])
				if path := filepath.Join(dir, e.Name()); newest[n] == "" && runs(path) {
					newest[n] = path
				}
			}
		}
	}
	var found []string
	if plain := f.named(name); plain != "" {
		found = append(found, plain)
	}
	var numbers []int
	for n := range newest {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int) int { return b - a })
	for _, n := range numbers {
		found = append(found, newest[n])
	}
	return found
}

func runs(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// says returns what a program prints, on one line, "" when it fails.
func says(tool string, args ...string) string {
	out, err := exec.Command(tool, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
