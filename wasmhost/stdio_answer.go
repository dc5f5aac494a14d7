package wasmhost

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/tetratelabs/wazero/sys"

	"github.com/weirlog/weir/router"
)

// A badAnswer is what a program did that made its output unusable.
type badAnswer struct{ text string }

func (b *badAnswer) Error() string { return b.text }

// ended reports whether an error says that a program ended and was content.
func ended(err error) bool {
	e, ok := errors.AsType[*sys.ExitError](err)
	return ok && e.ExitCode() == 0
}

// recordID is the member of a record by which the answer is known.
const recordID = "weir_id"

// answers are the records that a program is given, and what it made of them.
type answers struct {
	input, output []byte
	msgs          []*router.Message
	first         int64 // id of the first
	given         []given
	drafts        []router.Message // of given
	created       int              // messages
	named         int              // the message that was named last; -1: none
	parser        router.RecordParser
	one           [1]*router.Message
}

// given is a message that a program was given.
type given struct {
	from, to int  // its line, in input
	back     bool // it was named
	draft    int  // what it becomes; -1: it stays as it is
	last     *router.Message
}

var answersPool = sync.Pool{New: func() any { return new(answers) }}

func takeAnswers() *answers { return answersPool.Get().(*answers) }

func (a *answers) give() {
	a.reset()
	answersPool.Put(a)
}

// reset lets go of the messages, and of buffers of unusual size.
func (a *answers) reset() {
	clear(a.given)
	clear(a.drafts)
	a.msgs, a.given, a.drafts, a.created, a.one = nil, a.given[:0], a.drafts[:0], 0, [1]*router.Message{}
	if cap(a.input)+cap(a.output) > 4<<20 {
		a.input, a.output = nil, nil
	}
}

// ask makes the program's input of messages, which have the ids from first on.
func (a *answers) ask(in *instance, msgs []*router.Message, first int64) {
	a.msgs, a.first, a.named = msgs, first, -1
	a.input = a.input[:0]
	for i, m := range msgs {
		from := len(a.input)
		a.input = appendLine(a.input, m, first+int64(i))
		a.given = append(a.given, given{from: from, to: len(a.input) - 1, draft: -1})
	}
}

// appendLine appends a message's record with an id before all else, and a line end.
func appendLine(dst []byte, m *router.Message, id int64) []byte {
	if m.Field([]byte(recordID)) != nil {
		m = withoutID(m)
	}
	dst = append(dst, `{"`+recordID+`":`...)
	dst = strconv.AppendInt(dst, id, 10)
	brace := len(dst)
	dst = router.AppendRecord(dst, m)
	dst[brace] = ',' // a record is never empty
	return append(dst, '\n')
}

// withoutID is a copy of m whose field with the name of the id has another, so that no sender can speak for another
// message.
func withoutID(m *router.Message) *router.Message {
	c := *m
	c.Fields = append([]router.Field(nil), m.Fields...)
	name := []byte(recordID)
	for m.Field(name) != nil {
		name = append(name, '_')
	}
	c.Field([]byte(recordID)).Name = name
	return &c
}

// take does with the messages what the program wrote. On an error none of them has changed.
func (a *answers) take(in *instance, b *router.Batch, output []byte) error {
	whole := false
	defer func() {
		if !whole { // also when a panic stops it
			for _, m := range a.msgs {
				b.Unemit(m)
			}
		}
	}()
	if err := a.read(in, b, output); err != nil {
		return err
	}
	whole = true
	for i, m := range a.msgs {
		switch g := &a.given[i]; {
		case !g.back:
			b.Drop(m)
		case g.draft >= 0:
			*m = answered(m, &a.drafts[g.draft])
		}
	}
	return nil
}

// read takes the program's output apart, and creates messages.
func (a *answers) read(in *instance, b *router.Batch, output []byte) error {
	for len(output) > 0 {
		block := output[:wholeLines(output)]
		output = output[len(block):]
		in.chargeLong(2 * len(block))
		var kept []byte
		for at := 0; at < len(block); {
			end := len(block)
			if i := bytes.IndexByte(block[at:], '\n'); i >= 0 {
				end = at + i
			}
			line := trimJSON(block[at:end])
			switch {
			case len(line) == 0, a.unchanged(line):
			case kept == nil:
				// Messages point into what they are made of, so it must be the batch's: from here on, as most lines come changed
				// or none.
				if kept = b.Copy(block[at:]); kept == nil {
					return errNoRoom
				}
				block, at = kept, 0
				continue
			default:
				if err := a.line(in, b, line); err != nil {
					return err
				}
			}
			at = end + 1
		}
	}
	return nil
}

var errNoRoom = &badAnswer{"there is no memory left for what the program wrote"}

// outputBlock is about how much of the output is kept in one piece.
const outputBlock = 32 << 10

// wholeLines is how much of the output to look at: as many whole lines as a block holds, at least one.
func wholeLines(output []byte) int {
	if len(output) <= outputBlock {
		return len(output)
	}
	if i := bytes.LastIndexByte(output[:outputBlock], '\n'); i >= 0 {
		return i + 1
	}
	if i := bytes.IndexByte(output[outputBlock:], '\n'); i >= 0 {
		return outputBlock + i + 1
	}
	return len(output)
}

// unchanged reports whether a line is one of the input that was not answered before, and takes it as the answer.
func (a *answers) unchanged(line []byte) bool {
	id, n := leadingID(line)
	if n == 0 {
		return false
	}
	i, ok := a.index(id)
	if !ok {
		return false
	}
	g := &a.given[i]
	if g.back || !bytes.Equal(line, a.input[g.from:g.to]) {
		return false
	}
	g.back, a.named = true, i
	return true
}

// leadingID reads the id from the beginning of a line as it was given; n is where the rest begins, 0: there is no id.
func leadingID(line []byte) (id int64, n int) {
	const head = `{"` + recordID + `":`
	if !bytes.HasPrefix(line, []byte(head)) {
		return 0, 0
	}
	for n = len(head); n < len(line) && line[n]-'0' <= 9 && n < len(head)+18; n++ {
		id = id*10 + int64(line[n]-'0')
	}
	if n == len(head) || n == len(line) || line[n] != ',' {
		return 0, 0
	}
	return id, n
}

func (a *answers) index(id int64) (i int, ok bool) {
	n := id - a.first
	return int(n), n >= 0 && n < int64(len(a.msgs))
}

// line reads one line of output, which is the batch's.
func (a *answers) line(in *instance, b *router.Batch, line []byte) error {
	a.parser.MaxValue, a.parser.Ours = in.guest.host.mostValue, true
	id, n := leadingID(line)
	record := line
	if n > 0 {
		record = line[n:]
		record[0] = '{'
	}
	draft := bare(router.Message{})
	err := a.parser.Parse(&draft, record, b)
	if n > 0 {
		record[0] = ','
	}
	switch {
	case errors.Is(err, router.ErrNoRoom):
		return errNoRoom
	case err == router.ErrNotRecord:
		return &badAnswer{fmt.Sprintf("the program wrote a line that is not one JSON object: %.100q", line)}
	case err != nil:
		return &badAnswer{fmt.Sprintf("the program wrote a record that cannot be a message: %v", err)}
	}
	has := n > 0
	for i := range draft.Fields {
		if string(draft.Fields[i].Name) != recordID {
			continue
		}
		v := draft.Fields[i].Value
		draft.Fields = append(draft.Fields[:i], draft.Fields[i+1:]...)
		if v.Kind == router.Null {
			has = false
			break
		}
		if id, has = wholeNumber(v); !has {
			return &badAnswer{fmt.Sprintf("the program wrote a %s that is no whole number", recordID)}
		}
		break
	}
	if !has {
		return a.create(b, a.named, &draft)
	}
	i, ok := a.index(id)
	if !ok {
		return &badAnswer{fmt.Sprintf("the program wrote a record with the %s %d, which is none of those that it was just given (a program that keeps its output back needs mode: batch)", recordID, id)}
	}
	a.named = i
	g := &a.given[i]
	if g.back {
		return a.create(b, i, &draft)
	}
	g.back, g.draft = true, len(a.drafts)
	a.drafts = append(a.drafts, draft)
	return nil
}

func wholeNumber(v router.Value) (n int64, ok bool) {
	switch v.Kind {
	case router.Int:
		return v.Int(), true
	case router.Float:
		f := v.Float()
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return 0, false
}

// create makes a message behind one of those that were given; -1: the last. It is the batch's at once: what a program
// creates is within what the batch may have.
func (a *answers) create(b *router.Batch, behind int, draft *router.Message) error {
	if a.created >= mostEmits*len(a.msgs) {
		return &badAnswer{fmt.Sprintf("the program created more than %d messages for each that it was given", mostEmits)}
	}
	if behind < 0 {
		behind = len(a.msgs) - 1
	}
	m, g := a.msgs[behind], &a.given[behind]
	after := g.last
	if after == nil {
		after = m
	}
	d := answered(m, draft)
	if g.last = b.Emit(after, &d); g.last == nil {
		return errNoRoom
	}
	a.created++
	return nil
}

// answered is draft with what only weir sets of m.
func answered(m, draft *router.Message) router.Message {
	d := bare(*m)
	d.Message, d.Fields = draft.Message, draft.Fields
	return d
}
