package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/filters/toolchain"
	"github.com/weirlog/weir/router/routertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == compileCommand { // weir starts its own file, which is not called weir here
		main()
	}
	testscript.Main(tests{m}, map[string]func(){"weir": main, crashCommand: crashChild})
}

// tests are those of this package, and the end of what they share.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	routertest.ClosePostgres()
	return code
}

var update = flag.Bool("update", false, "write what the scripts' cmp lines got into testdata")

// TestScripts runs the program as its user sees it: testdata/*.txtar. Commands
// of our own: await FILE (until it is there), sql DATABASE QUERY WANT (the first
// column of the first row). [builds:LANG] tells whether the compiler is there.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GOMAXPROCS", "2")               // lanes, and with them the memory sum
			home := filepath.Join(e.WorkDir, ".home") // compilers write into it, and so does weir
			if err := os.Mkdir(home, 0o700); err != nil {
				return err
			}
			e.Setenv("HOME", home)
			self, err := exec.LookPath("weir")
			if err != nil {
				return err
			}
			e.Setenv("WEIR_ALONE", filepath.Dir(self)) // a PATH without any compiler
			cache := os.Getenv("GOCACHE")              // HOME is another one there
			if dir, err := os.UserCacheDir(); cache == "" && err == nil {
				cache = filepath.Join(dir, "go-build")
			}
			e.Setenv("GOCACHE", cache)
			filters, err := filepath.Abs("../../filters")
			if err != nil {
				return err
			}
			e.Setenv("CONFORMANCE", filepath.Join(filters, "conformance"))
			e.Setenv("ASSEMBLYSCRIPT", filepath.Join(filters, "sdk/assemblyscript/node_modules")) // make deps fills it
			return nil
		},
		Condition: func(cond string) (bool, error) {
			lang, ok := strings.CutPrefix(cond, "builds:")
			if !ok {
				return false, fmt.Errorf("no condition %s", cond)
			}
			err := toolchain.Ready(lang)
			if _, missing := os.Stat("../../filters/sdk/assemblyscript/node_modules"); lang == "assemblyscript" && missing != nil {
				return false, nil
			}
			if errors.Is(err, toolchain.ErrUsage) {
				return false, err
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": func(ts *testscript.TestScript, _ bool, args []string) {
				for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
					if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
						return
					}
					if time.Since(began) > time.Minute {
						ts.Fatalf("%s did not appear", args[0])
					}
				}
			},
			"sql": func(ts *testscript.TestScript, neg bool, args []string) {
				got, err := firstValue(ts.MkAbs(args[0]), args[1])
				ts.Check(err)
				if (got == args[2]) == neg {
					ts.Fatalf("%s: got %s, want %s", args[1], got, args[2])
				}
			},
		},
	})
}

func firstValue(path, query string) (value string, err error) {
	conn, err := sqlite.OpenConn(filepath.ToSlash(path), sqlite.OpenReadWrite)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	err = sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		if value == "" {
			value = stmt.ColumnText(0)
		}
		return nil
	}})
	return value, err
}
