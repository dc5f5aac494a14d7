package sqlstore

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestJSONIsRepairedOnlyWhereItMustBe(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		s := &scratch{}
		if got := string(storableJSON([]byte(in), s)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if (s.repaired > 0) != (in != want) || s.repaired > 1 {
			t.Errorf("%s: repaired %d", in, s.repaired)
		}
	}
	same := func(in string) { t.Helper(); check(in, in) }
	same(`{"a":[1,2.5e-3,true,null,"x\n\u00e4"]}`)
	same(`"\ud83d\ude00"`)
	same(`["\\u0000","1e999999"]`)
	same(strings.Repeat("[", 64) + strings.Repeat("]", 64))
	check(`"\u0000"`, `"`+replacement+`"`)
	check(`"\uD800"`, `"`+replacement+`"`)
	check(`"\ude00\ud83d"`, `"`+replacement+replacement+`"`)
	check(`"\ud83d\u0041"`, `"`+replacement+`\u0041"`)
	check(`[1e-20000,-1E+20000]`, `["1e-20000","-1E+20000"]`)
	check(strings.Repeat("[", 65)+`"]\u0000"`+strings.Repeat("]", 65), strings.Repeat("[", 64)+`"[\"]\\u0000\"]"`+strings.Repeat("]", 64))
}

func FuzzStorableJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) || !utf8.Valid(in) {
			return
		}
		s := &scratch{}
		kept := bytes.Clone(in)
		out := storableJSON(in, s)
		if !bytes.Equal(in, kept) {
			t.Fatal("the input was changed")
		}
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
		if s.repaired == 0 && !bytes.Equal(in, out) {
			t.Fatalf("%q became %q, uncounted", in, out)
		}
		again := storableJSON(out, s)
		if !bytes.Equal(again, out) {
			t.Fatalf("%q is repaired again, to %q", out, again)
		}
		d := json.NewDecoder(bytes.NewReader(out))
		d.UseNumber()
		depth := 0
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch token := token.(type) {
			case json.Delim:
				if token == '[' || token == '{' {
					depth++
				} else {
					depth--
				}
				if depth > maxDepth {
					t.Fatalf("%q is too deep", out)
				}
			case string:
				if strings.IndexByte(token, 0) >= 0 {
					t.Fatalf("%q holds NUL", out)
				}
			case json.Number:
				if len(token) > maxExponent {
					t.Fatal("a number is too long")
				}
			}
		}
	})
}

func FuzzStorableText(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &scratch{}
		out := storableText(in, s)
		if !utf8.Valid(out) || bytes.IndexByte(out, 0) >= 0 {
			t.Fatalf("%q became %q", in, out)
		}
		want := strings.ReplaceAll(string([]rune(string(in))), "\x00", replacement)
		if d := cmp.Diff(want, string(out)); d != "" {
			t.Fatal(d)
		}
	})
}
