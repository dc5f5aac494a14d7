package router

import (
	"encoding/json"
	"testing"
)

func TestFieldsByPath(t *testing.T) {
	m := &Message{Fields: []Field{
		{Name: []byte("a.b"), Value: Value{Kind: String, Bytes: []byte("literal")}},
		{Name: []byte("a"), Value: Value{Kind: Object, Bytes: []byte(`{"b":1,"c":2.5,"d":{"e":true,"x.y":"dotted","x":{"y":7,"z":null}},"t":"tab\there \ud83d\ude00","l":[1,2],"n":null,"q\"\u0041":"odd","big":1e999}`)}},
		{Name: []byte("s"), Value: Value{Kind: String, Bytes: []byte("text")}},
		{Name: []byte("gone"), Value: Value{Kind: Null}},
		{Name: []byte("broken"), Value: Value{Kind: Object, Bytes: []byte(`{"a":{"b":`)}},
	}}
	check := func(name string, kind Kind, want string) {
		t.Helper()
		r, err := ParseRef("fields." + name)
		if err != nil {
			t.Fatal(err)
		}
		v, _, ok := r.Value(m, []byte("before"))
		if ok != (kind != Absent) || ok && v.Kind != kind {
			t.Errorf("%s: kind %d %v, want %d", name, v.Kind, ok, kind)
		}
		got, ok := r.Append([]byte("before "), m)
		if string(got) != "before "+want || ok != (kind != Absent) {
			t.Errorf("%s: %q %v, want %q", name, got, ok, want)
		}
	}
	check("a.b", String, "literal")
	check("a.c", Float, "2.5")
	check("a.d.e", Bool, "true")
	check("a.d.x.y", String, "dotted")
	check("a.d.x", Object, `{"y":7,"z":null}`)
	check("a.d.x.z", Absent, "")
	check("a.t", String, "tab\there 😀")
	check("a.l", Array, "[1,2]")
	check(`a.q"A`, String, "odd")
	check("a.big", String, "1e999")
	for _, none := range []string{"a.n", "a.x", "a.b.c", "a.l.0", "s.x", "gone", "gone.x", "broken.a", "broken.a.b", "a.", ".a", "a..c", "a.d."} {
		check(none, Absent, "")
	}
	r, _ := ParseRef("fields.a.t")
	buf := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(10, func() { r.Value(m, buf) }); n > 0 {
		t.Errorf("%v allocations a value", n)
	}
}

func FuzzFieldsByPath(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"c":"\u00e4"}]},"a.b":2}`), "a.b")
	f.Add([]byte(`{"a":`), "a")
	f.Add([]byte(`{"\ud800":{}}`), "x")
	f.Fuzz(func(t *testing.T, object []byte, path string) {
		m := &Message{Fields: []Field{{Name: []byte("o"), Value: Value{Kind: Object, Bytes: object}}}}
		r := Ref{Kind: RefField, Name: "o." + path}
		v, _, ok := r.Value(m, nil)
		// What encoding/json finds under the very name is what is found.
		var all map[string]json.RawMessage
		if json.Unmarshal(object, &all) != nil || len(all) != 1 {
			return
		}
		for name, raw := range all {
			if name == path && string(raw) != "null" && !ok {
				t.Errorf("%q has no %q", object, path)
			}
			if name == path && (v.Kind == Object) != (raw[0] == '{') {
				t.Errorf("%q: %q is of kind %d", object, path, v.Kind)
			}
		}
	})
}
