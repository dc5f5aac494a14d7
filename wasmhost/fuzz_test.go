package wasmhost

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/weirlog/weir/router"
)

// FuzzEdits lets a guest edit a message as the message says. Whatever it does, a copy of the message on another route
// stays as it is, a failed call leaves no trace, and what a call leaves is a record that can be read back.
func FuzzEdits(f *testing.F) {
	f.Add([]byte("\x00"))
	f.Add([]byte("\x01\x00\x08\x00\x10\x00\x08\x04\x08\x03\x08\x00\x00"))                     // field set twice, unset, trap
	f.Add([]byte("\x00\x05\x98\x00\x04\x05\x98\x01\x09\x05\x99\x02\x03\x06\x98\x00\x01"))     // the same parameter twice, another, unset
	f.Add([]byte("\x02\x00\x00\x00\x10\x00\x01\x00\x10\x00\x00\x04\x08\x00\x05\x00\x02"))     // own keys, then a failure
	f.Add([]byte("\x00\x04\x08\x05\x07{\"k\":1}\x04\x09\x05\x03\x08\x00\x00\x00"))            // JSON
	f.Add([]byte("\x00\x08\x00\x00\x00\x00\x0a\x00\x20\x08\x00\x00\x00\xff\xfe\x00\x00"))     // record there and back
	f.Add([]byte("\x00\x01\x05\x20\x01\x01\x06\x20\x01\x02\x08\x20\x01\x03\x00\x00\x00\xc3")) // numbers
	g, _ := loadFile(f, "script.c")
	l := g.lanes[0]
	f.Fuzz(func(t *testing.T, script []byte) {
		b := router.NewBatch(4<<20, 1)
		defer b.Discard()
		m := b.Add(&router.Origin{Source: "s"})
		m.Text, m.Hostname, m.Received = b.Copy(script), []byte("host"), 1
		m.Fields = make([]router.Field, 1, 8)
		m.Fields[0] = router.Field{Name: []byte("a"), Value: router.Value{Kind: router.String, Bytes: []byte("field a")}}
		m.Structured = append(make([]router.Element, 0, 4), router.Element{ID: []byte("a"), Params: []router.Param{
			{Name: []byte("b"), Value: []byte("1")}, {Name: []byte("b"), Value: []byte("2")}, {Name: []byte("c"), Value: []byte("3")}}})
		other := *m
		before := router.AppendRecord(nil, m)
		if l.in == nil {
			if held := l.renew(t.Context()); held != nil {
				t.Fatal(held)
			}
		}
		ok, _ := l.message(b, m)
		if copied := router.AppendRecord(nil, &other); !bytes.Equal(copied, before) {
			t.Errorf("the copy was changed:\n%s\n%s", before, copied)
		}
		after := router.AppendRecord(nil, m)
		if !ok {
			if !bytes.Equal(after, before) {
				t.Errorf("not undone:\n%s\n%s", before, after)
			}
			return
		}
		if !json.Valid(after) {
			t.Errorf("no JSON: %s", after)
		}
		again := *m
		p := router.RecordParser{Strict: true}
		if err := p.Parse(&again, after, b); err != nil {
			t.Fatalf("not read back: %v: %s", err, after)
		}
		if read := router.AppendRecord(nil, &again); !bytes.Equal(read, after) {
			t.Errorf("read back as something else:\n%s\n%s", after, read)
		}
	})
}
