package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/weirlog/weir/router"
)

// A segment is a file: a header, records, and a seal once it is complete. Numbers are little-endian, sums are
// CRC-32C.
//
//	0     prefix, 64 bytes; a second copy of it at 4096
//	      0 magic · 8 format version (2) · 10 zero (2) · 12 where records begin (4) · 16 run (16) · 32 number of the first
//	      message (8) · 40 its arrival, Unix ns (8) · 48 number of the segment (8) · 56 length of the marks (4) · 60 sum
//	4160  marks: each a uvarint length, sender, uvarint last; then their sum (4)
//	…     records: 32 bytes of header and a payload
//	      0 magic (4) · 4 sum of the rest of the header, begun with that of the run (4) · 8 length of the payload (4) · 12 its
//	      sum (4) · 16 number (8) · 24 how far the last synced number was behind when it was written (4) · 28 length of
//	      the mark's sender (2) · 30 kind (2)
//
// The payload of a message is its mark, when the sender's length is not 0 (sender, 8 bytes of last), and its blob; see
// router.AppendBlob. The mark of an Append is in its last record. That of the seal is the arrival of the newest message;
// its number is that of the last message. A sum that begins with the run's does not take old blocks of the disk for records.
const (
	version = 1

	prefixSize = 64
	copyAt     = 4096
	marksAt    = copyAt + prefixSize

	headSize = 32
	sealSize = headSize + 8

	kindMessage = 0
	kindSeal    = 1
)

var (
	segmentMagic = [8]byte{'w', 'e', 'i', 'r', 's', 'e', 'g', 0xff}
	recordMagic  = []byte{0xf1, 'w', 'r', 0x8d}
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

func sum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// A prefix is the fixed part of a segment's header.
type prefix struct {
	begin   uint32 // of the records
	run     router.RunID
	first   uint64 // number of the first message
	arrival int64
	seq     uint64 // of the segment
	marks   uint32 // bytes, with their sum
}

func (p *prefix) append(dst []byte) []byte {
	from := len(dst)
	le := binary.LittleEndian
	dst = append(dst, segmentMagic[:]...)
	dst = le.AppendUint16(dst, version)
	dst = le.AppendUint16(dst, 0)
	dst = le.AppendUint32(dst, p.begin)
	dst = append(dst, p.run[:]...)
	dst = le.AppendUint64(dst, p.first)
	dst = le.AppendUint64(dst, uint64(p.arrival))
	dst = le.AppendUint64(dst, p.seq)
	dst = le.AppendUint32(dst, p.marks)
	return le.AppendUint32(dst, sum(dst[from:]))
}

// A versionError says that a segment has another format.
type versionError int

func (v versionError) Error() string {
	if v > version {
		return fmt.Sprintf("it was written by a newer weir (format %d, this one knows %d): let that weir deliver it, or move the directory away", int(v), version)
	}
	return fmt.Sprintf("it was written by an older weir (format %d, this one knows %d): let that weir deliver it, or move the directory away", int(v), version)
}

// readPrefix reads a prefix out of its 64 bytes. ok is false when they are damaged.
func readPrefix(data []byte) (p prefix, v int, ok bool) {
	if len(data) < prefixSize || [8]byte(data) != segmentMagic {
		return p, 0, false
	}
	le := binary.LittleEndian
	v = int(le.Uint16(data[8:]))
	if le.Uint32(data[60:]) != sum(data[:60]) {
		return p, v, false
	}
	p = prefix{
		begin: le.Uint32(data[12:]), run: router.RunID(data[16:32]), first: le.Uint64(data[32:]),
		arrival: int64(le.Uint64(data[40:])), seq: le.Uint64(data[48:]), marks: le.Uint32(data[56:]),
	}
	return p, v, v != version || p.begin >= marksAt+p.marks && p.marks >= 4 && p.first > 0
}

// appendHeader appends the whole header of a segment, with the marks in their encoded form.
func appendHeader(dst []byte, p prefix, marks []byte) []byte {
	p.marks = uint32(len(marks)) + 4
	p.begin = marksAt + p.marks
	from := len(dst)
	dst = p.append(dst)
	dst = append(dst, make([]byte, copyAt-prefixSize)...)
	dst = append(dst, dst[from:from+prefixSize]...)
	dst = append(dst, marks...)
	return binary.LittleEndian.AppendUint32(dst, sum(marks))
}

// A record is one entry of a segment. Its bytes are the scanner's.
type record struct {
	kind   uint16
	number uint64
	back   uint32 // number-back was synced when it was written
	sender []byte // of its mark; nil: none
	last   uint64 // of its mark
	blob   []byte // of a seal: 8 bytes
	offset int64
	size   int64
}

// appendRecord appends a message. The mark is not written when its sender is "".
func appendRecord(dst []byte, runSum uint32, number, synced uint64, m *router.Message, mark router.Mark) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, headSize)...)
	if mark.Sender != "" {
		dst = append(dst, mark.Sender...)
		dst = binary.LittleEndian.AppendUint64(dst, mark.Last)
	}
	dst = router.AppendBlob(dst, m)
	closeRecord(dst[from:], runSum, number, synced, len(mark.Sender), kindMessage)
	return dst
}

// appendSeal appends a seal. synced is how far it is known that all was synced.
func appendSeal(dst []byte, runSum uint32, last, synced uint64, newest int64) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, headSize)...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(newest))
	closeRecord(dst[from:], runSum, last, synced, 0, kindSeal)
	return dst
}

// closeRecord fills the header of a record whose payload is there.
func closeRecord(rec []byte, runSum uint32, number, synced uint64, sender int, kind uint16) {
	le := binary.LittleEndian
	copy(rec, recordMagic)
	le.PutUint32(rec[8:], uint32(len(rec)-headSize))
	le.PutUint32(rec[12:], sum(rec[headSize:]))
	le.PutUint64(rec[16:], number)
	le.PutUint32(rec[24:], uint32(min(number-synced, 1<<32-1)))
	le.PutUint16(rec[28:], uint16(sender))
	le.PutUint16(rec[30:], kind)
	le.PutUint32(rec[4:], crc32.Update(runSum, castagnoli, rec[8:headSize]))
}

// readHead reads the header of a record; length is that of its payload.
func readHead(head []byte, runSum uint32) (rec record, length int64, sender int, ok bool) {
	le := binary.LittleEndian
	if [4]byte(head) != [4]byte(recordMagic) || le.Uint32(head[4:]) != crc32.Update(runSum, castagnoli, head[8:headSize]) {
		return rec, 0, 0, false
	}
	rec = record{number: le.Uint64(head[16:]), back: le.Uint32(head[24:]), kind: le.Uint16(head[30:])}
	return rec, int64(le.Uint32(head[8:])), int(le.Uint16(head[28:])), true
}

// split cuts the payload into mark and blob.
func (rec *record) split(payload []byte, sender int) bool {
	if sender > 0 {
		if len(payload) < sender+8 {
			return false
		}
		rec.sender, rec.last = payload[:sender], binary.LittleEndian.Uint64(payload[sender:])
		payload = payload[sender+8:]
	}
	rec.blob = payload
	return rec.kind == kindMessage || rec.kind == kindSeal && len(payload) == 8
}
