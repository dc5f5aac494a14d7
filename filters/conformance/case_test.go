package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadCasesLeavesOutEmptyAndCommentLines(t *testing.T) {
	cases, err := ReadCases(strings.NewReader("\n# a\n// b\n" + `{"name":"n","in":{},"out":{"a":1},"verdict":"keep","log":[]}` + "\n"))
	if err != nil || len(cases) != 1 || cases[0].Name != "n" || string(cases[0].Out) != `{"a":1}` || cases[0].Fail != nil || cases[0].Log == nil {
		t.Fatal(cases, err)
	}
}

func TestReadCasesRefusesWhatCannotBeMeant(t *testing.T) {
	check := func(line, want string) {
		t.Helper()
		_, err := ReadCases(strings.NewReader("\n" + line))
		if err == nil {
			t.Fatalf("accepted: %s", line)
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Error(diff)
		}
	}
	check(`{"in":{},"verdict":"drop"}`, "2: no name")
	check(`{"name":"n","in":{},"verdict":"dropped"}`, `2: verdict "dropped": keep, drop, skip, reject, failed or refused`)
	check(`{"name":"n","in":{},"verdict":"drop","outt":null}`, `2: json: unknown field "outt"`)
	check(`{"name":"n","verdict":"drop"}`, "2: no message: in is missing")
	check(`{"name":"n","in":{},"verdict":"keep"}`, "2: verdict keep, and out is missing")
	check(`{"name":"n","in":{},"out":{},"verdict":"drop"}`, "2: verdict drop, and out is there")
	check(`{"name":"n","in":{},"verdict":"refused"}`, "2: a filter that is refused has neither in nor out")
	check(`{"name":"n","in":{},"verdict":"drop"} {}`, "2: more than one object")
	check(`{"name":"n","tick":true,"in":{}}`, "2: a tick has no message: in, out, verdict, fail, to and destinations are not for it")
	check(`{"name":"n","verdict":"refused","emit":[{}]}`, "2: a filter that is refused has neither in nor out")
}
