package config

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/weirlog/weir/router"
)

// What a path holds when somebody takes it for more than a path.
var (
	aURL     = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]*:/+|sqlite3?:)`)
	variable = regexp.MustCompile(`\$\{?([A-Za-z_]\w*)\}?`)
	calendar = regexp.MustCompile(`%[-_]?[YymdHMSFjV](?:[^A-Za-z]|$)`)
)

// OddPath tells of a path of that setting that is none: a URL, or one with something in it that a shell
// or another program would expand. several is the way to what a calendar in it is for.
func OddPath(setting, name, several string) []Problem {
	tell := func(what, hint string) []Problem { return []Problem{{Path: setting, What: what, Hint: hint}} }
	if scheme := aURL.FindString(name); scheme != "" && !strings.Contains(name, "?") {
		rest := strings.TrimPrefix(name, scheme)
		if strings.HasSuffix(scheme, "///") || strings.HasSuffix(scheme, ":/") {
			rest = "/" + rest
		}
		return tell("a path is wanted, not a URL", rest)
	}
	if strings.HasPrefix(name, "~") && (name == "~" || strings.Contains(name, "/")) {
		base := "weir/" + path.Base(name)
		if path.Ext(base) == "" {
			base = strings.TrimSuffix(strings.TrimPrefix(base, "weir/"), "~")
		}
		return tell("~ is not expanded: it would be a directory of that name", "the whole path, such as /var/lib/"+base)
	}
	for _, m := range variable.FindAllStringSubmatch(name, -1) {
		if _, err := router.ParseRef(m[1]); err == nil {
			return tell(fmt.Sprintf("%s is not expanded here: a path is the same for all messages", m[0]), several)
		}
		if m[1] == strings.ToUpper(m[1]) {
			return tell(m[0]+" is no reference", "${env:"+m[1]+"}")
		}
	}
	if found := calendar.FindString(name); found != "" {
		return tell(fmt.Sprintf("%s is not expanded here: a path is the same at all times", found[:strings.IndexAny(found, "YymdHMSFjV")+1]), several)
	}
	return nil
}
