package sqlstore

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// spoiled are 10,000 messages, most of them good, for the columns n (16 bits, not
// 13), short (8 characters), must (not null) and once (unique). refused is what the
// database says of each kind of bad one: a code, a space, a column or nothing. want
// are the dead letters; repaired values are stored nevertheless.
func spoiled(refused [6]string) (msgs []*router.Message, want []string, repaired int) {
	msgs = messages(10_000)
	for i, m := range msgs {
		with(m, "n", router.IntValue(int64(i%13)))
		with(m, "short", text("short"))
		with(m, "must", text("x"))
		with(m, "once", text(fmt.Sprint(i)))
	}
	spoil := [...]func(m *router.Message){
		func(m *router.Message) { m.Fields[0].Value = text("many") },
		func(m *router.Message) { m.Fields[1].Value = text("much too long") },
		func(m *router.Message) { m.Fields[0].Value = router.IntValue(99999) },
		func(m *router.Message) { m.Fields[2].Value = router.Value{Kind: router.Null} },
		func(m *router.Message) { m.Fields[0].Value = router.IntValue(13) },
		func(m *router.Message) { m.Fields[3].Value = text("0") },
		// These are repaired.
		func(m *router.Message) { m.Text = []byte("a\x00b") },
		func(m *router.Message) { m.Text = []byte("Bl\xe5b\xe6r") },
		func(m *router.Message) {
			with(m, "deep", router.Value{Kind: router.Object, Bytes: []byte(`{"x":"\u0000"}`)})
		},
	}
	for i := range 37 {
		at, kind := 3+i*271, i%len(spoil)
		if spoil[kind](msgs[at]); kind < len(refused) {
			want = append(want, fmt.Sprintf("message %d %s", at, refused[kind]))
		} else {
			repaired++
		}
	}
	return msgs, want, repaired
}

// wantSpoiled looks what became of them, and that no reason has a value in it.
func (r *rig) wantSpoiled(want []string, repaired int) {
	r.t.Helper()
	var got []string
	for _, l := range r.letters {
		got = append(got, fmt.Sprintf("%s %s %s", l.Message.Text, l.Code, l.Column))
		if strings.Contains(l.Reason, "much too") || strings.Contains(l.Reason, "many") || strings.Contains(l.Reason, "99999") {
			r.t.Errorf("a value is in the reason: %s", l.Reason)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Error(diff)
	}
	if n := counted(r.t, r.metrics.repaired); int(n) != repaired {
		r.t.Errorf("%v values repaired, want %d", n, repaired)
	}
	if n := counted(r.t, r.metrics.refused); n == 0 {
		r.t.Error("no refusals counted")
	}
}
