package conformance

import (
	"encoding/json"
	"reflect"
	"testing"
)

// What splice and cut do to the text of an object is what setting and deleting a member does to its value.
func FuzzObject(f *testing.F) {
	f.Add(`{"name": "n", "in": {"a": [1, "x"]}, "verdict": "keep"}`, "verdict", "drop")
	f.Add(`{ }`, "a", "b")
	f.Add(`{"a":1 , "b" : {"a":2}}`, "b", "}\"")
	f.Add(`{"a":1,"\u0062":2}`, "b", "<")
	f.Add(` {"a":"}",
 "b":null}  `, "c", "")
	f.Fuzz(func(t *testing.T, object, name, value string) {
		var before map[string]any
		all, err := members([]byte(object))
		if invalid := json.Unmarshal([]byte(object), &before); invalid != nil || before == nil {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", object, err)
		}
		if len(all) != len(before) { // a name is there twice
			return
		}
		key, _ := json.Marshal(name)
		json.Unmarshal(key, &name) // valid UTF-8
		equal := func(what string, text []byte, want map[string]any) {
			t.Helper()
			var got map[string]any
			if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %q in %q: %q: %v", what, name, object, text, err)
			}
		}
		val, _ := json.Marshal(value)
		json.Unmarshal(val, &value)
		if _, there := before[name]; there || !needsEscape(name) {
			spliced, err := splice([]byte(object), name, val)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{name: value}
			for k, v := range before {
				if k != name {
					want[k] = v
				}
			}
			equal("splice", spliced, want)
		}
		without := cut([]byte(object), name)
		delete(before, name)
		equal("cut", without, before)
	})
}

// needsEscape is whether a name is not written as it is: those of a case are.
func needsEscape(name string) bool {
	key, _ := json.Marshal(name)
	return string(key) != `"`+name+`"`
}
