package conformance

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/wasmhost"
)

// What must not be left, by other means than the filter's own.
var (
	digitGroups = regexp.MustCompile(`[0-9]+(?:[ -][0-9]+)*`)
	address     = regexp.MustCompile(`[A-Za-z0-9_+.-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9]`)
	bearer      = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])bearer[ \t]+([a-z0-9._-]+)`)
	basic       = regexp.MustCompile(`(?i)authorization: (?:basic|bearer) ([a-z0-9]+)`)
)

// isCard is the rule of stock:redact: 13 to 19 digits with a right check digit, but for times since 1970.
func isCard(digits string, onePiece bool) bool {
	n := len(digits)
	if n < 13 || n > 19 || onePiece && (n == 13 || n == 16 || n == 19) && digits[0] == '1' && digits[1] >= '5' {
		return false
	}
	sum := 0
	for i := range n {
		d := int(digits[n-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// leftCard returns a card number in text, or "".
func leftCard(text string) string {
	for _, run := range digitGroups.FindAllString(text, -1) {
		groups := strings.FieldsFunc(run, func(c rune) bool { return c == ' ' || c == '-' })
		for from := range groups {
			for to := from + 1; to <= len(groups); to++ {
				if digits := strings.Join(groups[from:to], ""); isCard(digits, to == from+1) {
					return digits
				}
			}
		}
	}
	return ""
}

// redact is stock:redact as a function of the message's text.
func redact(t testing.TB, g *wasmhost.Guest, text []byte) []byte {
	t.Helper()
	record, err := json.Marshal(map[string]string{"message_b64": base64.StdEncoding.EncodeToString(text)})
	if err != nil {
		t.Fatal(err)
	}
	o, err := g.Try(t.Context(), record)
	if err != nil || o.Verdict != Keep {
		t.Fatalf("%+v %v", o, err)
	}
	var m struct {
		Message string
		Base64  []byte `json:"message_b64"`
	}
	if err := json.Unmarshal(o.Record, &m); err != nil {
		t.Fatal(err)
	}
	if m.Base64 != nil {
		return m.Base64
	}
	return []byte(m.Message)
}

// leavesNothing fails the test when redact leaves something, or changes what it should not.
func leavesNothing(t testing.TB, g *wasmhost.Guest, text []byte) {
	t.Helper()
	got := redact(t, g, text)
	if len(got) != len(text) {
		t.Fatalf("%q became %q", text, got)
	}
	for i := range got {
		if got[i] != text[i] && got[i] != '#' {
			t.Fatalf("byte %d of %q became %q", i, text, got[i])
		}
	}
	left := string(got)
	if card := leftCard(left); card != "" {
		t.Errorf("%q: the card %s is left in %q", text, card, left)
	}
	if a := address.FindString(left); a != "" && !strings.Contains(a, "#") {
		t.Errorf("%q: the address %s is left in %q", text, a, left)
	}
	for _, pattern := range []*regexp.Regexp{bearer, basic} {
		if m := pattern.FindStringSubmatch(left); m != nil {
			t.Errorf("%q: the token %s is left in %q", text, m[1], left)
		}
	}
}

func FuzzRedactLeavesNothing(f *testing.F) {
	for _, text := range []string{
		"", "4111 1111-1111 1111", "1 4111111111111111 5500000000000004", "41111111111111114111111111111111", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
		"a@b.co@c.de", "x@y.z@a.bc.de.f1 'q'@w.er", "a%40b.com%40c.org", "Bearer bearer a Bearer", "authorization:authorization: Basic QQ", "Authorization: Digest a=\"b\"\r\nx",
		"proxy-authorization = \"bearer \" x", "AUTHORIZATION:\\\"Basic\\\" x", "\xff@\xffx.yy 4\xff111", "bearer%20x=1@a.bc", "authorization: Bearer 4111111111111111 a@b.cd",
	} {
		f.Add([]byte(text))
	}
	g := newRunner(f).load(f, "stock:redact", nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			t.Skip()
		}
		leavesNothing(t, g, text)
	})
}

// words are what redact looks for, in pieces.
var words = strings.Split("bearer|Bearer|authorization|Authorization| |  |:|: |=|=>|\"|'|\\\"|,|;|]|basic|Basic|digest|token|%20|%40|@|.|-|_|+|%|a|b|z|x1|com|example.com|"+
	"4111111111111111|4111|1111|5500|0000|0004|378282246310005|0|1|7|17|1700000000000|\n|\r|\t|ä|\xff|[|{|>", "|")

func TestRedactLeavesNothingInMixedText(t *testing.T) {
	g := newRunner(t).load(t, "stock:redact", nil)
	random := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		var text []byte
		for range random.IntN(16) {
			text = append(text, words[random.IntN(len(words))]...)
		}
		leavesNothing(t, g, text)
		if t.Failed() {
			return
		}
	}
}
