package router

import (
	"encoding/binary"
	"net/netip"
	"unsafe"
)

// The binary encoding of a message, a blob: for disk buffers and dead letters, which
// must give back what came, byte for byte. Record JSON cannot: it is UTF-8.
//
//	byte      version of the form: 1
//	uvarint   length of the origin; then source, listener, peer (uvarint length + 1, or 0; bytes), length
//	          of the address (0, 4 or 16), its bytes, and behind 16 its zone
//	byte      facility
//	byte      severity
//	8 bytes   received, Unix ns
//	8 bytes   timestamp, Unix ns
//	uvarint   serial
//	value     raw, then hostname, app_name, proc_id, msg_id, text
//	list      structured data: each a value (id) and a list of two values (name, value)
//	list      fields: each a value (name), a byte (kind), a uvarint (number), a value (bytes)
//
// Numbers are little-endian. A value begins with a uvarint u: 0 is nil; odd, it is u>>1 bytes of raw, from the
// offset on that follows as uvarint; even, the u/2-1 bytes that follow. A list begins with a uvarint: 0 is nil, else the number
// of its entries and 1.
const blobVersion = 1

// AppendBlob appends m in its binary encoding, without loss: Batch.AddBlob makes an equal message of it. What lies
// in Raw is not repeated. It does not allocate but for dst.
func AppendBlob(dst []byte, m *Message) []byte {
	dst = append(dst, blobVersion)
	dst = appendBlobOrigin(dst, m.Origin)
	dst = append(dst, m.Facility, m.Severity)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.Received))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.Timestamp))
	dst = binary.AppendUvarint(dst, m.Serial)
	dst = appendBlobValue(dst, m.Raw, nil)
	for _, v := range [...][]byte{m.Hostname, m.AppName, m.ProcID, m.MsgID, m.Text} {
		dst = appendBlobValue(dst, v, m.Raw)
	}
	dst = appendBlobCount(dst, len(m.Structured), m.Structured == nil)
	for i := range m.Structured {
		e := &m.Structured[i]
		dst = appendBlobValue(dst, e.ID, m.Raw)
		dst = appendBlobCount(dst, len(e.Params), e.Params == nil)
		for j := range e.Params {
			dst = appendBlobValue(dst, e.Params[j].Name, m.Raw)
			dst = appendBlobValue(dst, e.Params[j].Value, m.Raw)
		}
	}
	dst = appendBlobCount(dst, len(m.Fields), m.Fields == nil)
	for i := range m.Fields {
		f := &m.Fields[i]
		dst = appendBlobValue(dst, f.Name, m.Raw)
		dst = append(dst, byte(f.Value.Kind))
		dst = binary.AppendUvarint(dst, f.Value.Num)
		dst = appendBlobValue(dst, f.Value.Bytes, m.Raw)
	}
	return dst
}

func appendBlobCount(dst []byte, n int, none bool) []byte {
	if none {
		return append(dst, 0)
	}
	return binary.AppendUvarint(dst, uint64(n)+1)
}

// appendBlobValue appends v, by its place when it lies in raw.
func appendBlobValue(dst, v, raw []byte) []byte {
	if len(v) == 0 {
		if v == nil {
			return append(dst, 0)
		}
		return append(dst, 2)
	}
	if len(v) <= len(raw) {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(v))) - uintptr(unsafe.Pointer(unsafe.SliceData(raw)))
		if from <= uintptr(len(raw)-len(v)) { // below raw it is huge
			dst = binary.AppendUvarint(dst, uint64(len(v))<<1|1)
			return binary.AppendUvarint(dst, uint64(from))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(v))*2+2)
	return append(dst, v...)
}

func appendBlobOrigin(dst []byte, o *Origin) []byte {
	zone := o.Addr.Zone()
	size := sizeOfString(o.Source) + sizeOfString(o.Listener) + sizeOfString(o.Peer) + 1 + o.Addr.BitLen()/8
	if o.Addr.Is6() {
		size += sizeOfString(zone)
	}
	dst = binary.AppendUvarint(dst, uint64(size))
	for _, s := range [...]string{o.Source, o.Listener, o.Peer} {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	dst = append(dst, byte(o.Addr.BitLen()/8))
	switch {
	case o.Addr.Is4():
		a := o.Addr.As4()
		dst = append(dst, a[:]...)
	case o.Addr.Is6():
		a := o.Addr.As16()
		dst = append(dst, a[:]...)
		dst = binary.AppendUvarint(dst, uint64(len(zone)))
		dst = append(dst, zone...)
	}
	return dst
}

// sizeOfString is what a string takes with its length.
func sizeOfString(s string) int {
	n := len(s) + 1
	for u := len(s); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// Origins make one Origin of equal ones while blobs are read. The zero value is ready; it is not for
// concurrent use, and remembers a bounded number.
type Origins struct {
	key  string // encoded form of last
	last *Origin
	all  map[string]*Origin
}

const mostOrigins = 4096

// find returns the origin of an encoded form, or nil when it is none.
func (k *Origins) find(data []byte) *Origin {
	if k != nil && k.last != nil && string(data) == k.key {
		return k.last
	}
	if k != nil {
		if o := k.all[string(data)]; o != nil {
			k.key, k.last = string(data), o
			return o
		}
	}
	o := readOrigin(data)
	if o == nil || k == nil {
		return o
	}
	if k.all == nil || len(k.all) >= mostOrigins {
		k.all = map[string]*Origin{}
	}
	k.key, k.last = string(data), o
	k.all[k.key] = o
	return o
}

func readOrigin(data []byte) *Origin {
	r := blobReader{data: data}
	o := new(Origin)
	o.Source, o.Listener, o.Peer = string(r.counted()), string(r.counted()), string(r.counted())
	n := r.byte()
	switch n {
	case 0:
	case 4, 16:
		a := r.take(uint64(n))
		o.Addr, _ = netip.AddrFromSlice(a)
		if n == 16 {
			o.Addr = o.Addr.WithZone(string(r.counted()))
		}
	default:
		r.broken = true
	}
	if r.broken || len(r.data) > 0 {
		return nil
	}
	return o
}
