package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferencesNameTheMembers(t *testing.T) {
	check := func(want, got string, differences ...string) {
		t.Helper()
		var have []string
		differ("out", []byte(want), []byte(got), func(d Difference) {
			have = append(have, d.Member+": "+d.Want+" -> "+d.Got)
		})
		if diff := cmp.Diff(differences, have); diff != "" {
			t.Errorf("%s %s\n%s", want, got, diff)
		}
	}
	check(`{"a":1}`, `{"a":1}`)
	check(`{"a":1,"b":{"c":[1,2]}}`, `{"a":2,"b":{"c":[1]}}`, "out.a: 1 -> 2", "out.b.c: [1,2] -> [1]")
	check(`{"a":1}`, `{"b":"x"}`, "out.a: 1 -> absent", `out.b: absent -> "x"`)
	check(`{"a":1,"b":2}`, `{"b":2,"a":1}`, "out: the order a, b -> b, a")
	check(`{"a":{}}`, `{"a":"{}"}`, `out.a: {} -> "{}"`)
	x := strings.Repeat("x", 500)
	check(`{"m":"`+x+`A`+x+`"}`, `{"m":"`+x+`B`+x+`"}`,
		"out.m: …"+x[:60]+"A"+x[:99]+"… -> …"+x[:60]+"B"+x[:99]+"…")
	check(`{"m":"`+strings.Repeat("ä", 300)+`"}`, `{"m":""}`,
		`out.m: "`+strings.Repeat("ä", 50)+`… -> ""`)
}

func TestSpliceKeepsTheMannerOfALine(t *testing.T) {
	check := func(object, name, value, want string) {
		t.Helper()
		got, err := splice([]byte(object), name, []byte(value))
		if err != nil || string(got) != want {
			t.Errorf("%s %s: %s %v", object, name, got, err)
		}
	}
	check(`{"a":1,"b":[2] ,"c":{"b":3}}`, "b", `"x"`, `{"a":1,"b":"x" ,"c":{"b":3}}`)
	check(`{ "a": 1, "b": 2 }`, "c", "3", `{ "a": 1, "b": 2, "c": 3 }`)
	check(`{"a":1}`, "c", "3", `{"a":1,"c":3}`)
	check(`{ "a" : 1 }`, "c", "3", `{ "a" : 1,"c" : 3 }`)
	check(`{}`, "c", "3", `{"c":3}`)
	check(`{"a\"b":1,"d":2}`, "a\"b", "3", `{"a\"b":3,"d":2}`)
}

func TestCutLeavesAnObject(t *testing.T) {
	check := func(object, name, want string) {
		t.Helper()
		if got := string(cut([]byte(object), name)); got != want {
			t.Errorf("%s without %s: %s", object, name, got)
		}
	}
	check(`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`)
	check(`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`)
	check(`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`)
	check(`{"a":1}`, "a", `{}`)
	check(`{"a":1}`, "b", `{"a":1}`)
}

func TestUpdateKeepsCommentsAndOrder(t *testing.T) {
	file := `# what it promises
{"name":"one", "verdict":"keep", "in":{"message":"m"}, "out":{"message":"n"}}

// and more
  {"name":"two","in":{"message":"m"},"out":null,"verdict":"drop"}
{"name":"three","verdict":"refused"}
`
	cases, err := ReadCases(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	reason := "no"
	results := []Result{
		{Case: cases[0], Got: Case{Verdict: Reject, Fail: &reason}, Differences: []Difference{{Member: "verdict"}, {Member: "out"}}},
		{Case: cases[1], Got: Case{Verdict: Keep, Out: []byte(`{"facility":1,"severity":5,"message":"<m>"}`),
			Emit: []json.RawMessage{[]byte(`{"facility":1,"severity":3,"message":"e"}`)}},
			Differences: []Difference{{Member: "verdict"}, {Member: "out.message"}, {Member: "emit[0]"}}},
		{Case: cases[2], Got: Case{Verdict: "started"}, Differences: []Difference{{Member: "verdict"}}},
	}
	got, skipped, err := Update([]byte(file), results)
	if err != nil {
		t.Fatal(err)
	}
	want := `# what it promises
{"name":"one", "verdict":"reject", "in":{"message":"m"}, "out":null}

// and more
  {"name":"two","in":{"message":"m"},"out":{"message":"<m>"},"verdict":"keep","emit":[{"severity":3,"message":"e"}]}
{"name":"three","verdict":"refused"}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if len(skipped) != 1 || skipped[0].Case.Name != "three" {
		t.Errorf("skipped %+v", skipped)
	}
}
