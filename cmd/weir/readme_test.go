package main

import (
	"os/exec"
	"testing"
)

// What README.md says to write and to type works, in its order.
func TestTheREADMEIsTrue(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	typePage(t, "../../README.md")
}

// So does what the first hour consists of.
func TestTheQuickStartIsTrue(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	typePage(t, "../../docs/quick-start.md")
}

// shell runs a script in a directory of its own, in which weir is the program under test.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", typed(script))
	cmd.Dir, cmd.Env = dir, shellEnv(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}
