package spool

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
)

// marks are the senders that number what they send, and how far each has come. Those not heard of for
// longest are forgotten.
type marks struct {
	of    map[string]entry
	clock uint64
}

type entry struct {
	last uint64
	used uint64 // marks.clock
}

const (
	mostMarks  = 10_000
	longSender = 255 // bytes; longer names are kept by their hash
)

// senderKey is the name under which a sender is kept.
func senderKey(sender string) string {
	if len(sender) <= longSender {
		return sender
	}
	hash := sha256.Sum256([]byte(sender))
	return string(hash[:])
}

// set notes a mark whose sender is a senderKey.
func (k *marks) set(mark router.Mark) {
	if mark.Sender == "" {
		return
	}
	if k.of == nil {
		k.of = map[string]entry{}
	}
	e, known := k.of[mark.Sender]
	k.clock++
	e.last, e.used = max(e.last, mark.Last), k.clock
	if known {
		k.of[mark.Sender] = e
		return
	}
	if len(k.of) >= mostMarks { // a tenth at once, so that this is rare
		for _, sender := range k.oldestFirst()[:mostMarks/10] {
			delete(k.of, sender)
		}
	}
	k.of[strings.Clone(mark.Sender)] = e
}

func (k *marks) oldestFirst() []string {
	senders := make([]string, 0, len(k.of))
	for sender := range k.of {
		senders = append(senders, sender)
	}
	slices.SortFunc(senders, func(a, b string) int { return cmp.Compare(k.of[a].used, k.of[b].used) })
	return senders
}

func (k *marks) append(dst []byte) []byte {
	for _, sender := range k.oldestFirst() {
		dst = binary.AppendUvarint(dst, uint64(len(sender)))
		dst = append(dst, sender...)
		dst = binary.AppendUvarint(dst, k.of[sender].last)
	}
	return dst
}

// read adds the marks of a segment's header, with their sum; false: they are damaged.
func (k *marks) read(data []byte) bool {
	if len(data) < 4 || sum(data[:len(data)-4]) != binary.LittleEndian.Uint32(data[len(data)-4:]) {
		return false
	}
	for data = data[:len(data)-4]; len(data) > 0; {
		n, used := binary.Uvarint(data)
		if used <= 0 || n > uint64(len(data)-used) {
			return false
		}
		sender := string(data[used : used+int(n)])
		data = data[used+int(n):]
		last, used := binary.Uvarint(data)
		if used <= 0 {
			return false
		}
		data = data[used:]
		k.set(router.Mark{Sender: sender, Last: last})
	}
	return true
}
