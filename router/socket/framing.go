package socket

import "bytes"

// A Framing says how a stream is cut into messages.
type Framing uint8

const (
	FramingAuto  Framing = iota // per frame: a count where there is one, else a line
	FramingOctet                // counted frames alone (RFC 6587 section 3.4.1)
	FramingLF                   // lines alone (RFC 6587 section 3.4.2); nothing is a count
)

// A Framer cuts one stream into frames. It is fed with what was read, in pieces
// of any size; the frames do not depend on how the stream was cut.
//
// A line ends at LF or NUL, less the CRs before it. A counted frame is digits,
// a space and that many octets; in FramingAuto the first of a run is one only
// if `<` and a digit follow. Between frames LF, CR and NUL are skipped.
// Frames over Max are cut there; their rest is skipped and not stored.
type Framer struct {
	Framing Framing
	Max     int // bytes of a frame, at least 16
	Hard    int // a larger count is no count

	// Grow is asked before the store for unfinished frames changes its capacity
	// from old to new bytes; when it answers false the stream is given up. nil
	// allows everything.
	Grow func(old, new int) bool

	state   state
	counted bool     // the frame before was counted
	bad     bool     // not to be gone on with
	head    [14]byte // inHead: what may be a count
	headLen int
	need    int    // inCounted: octets of the frame
	got     int    // inCounted: of these, how many have come
	crs     int    // inLine: CRs behind the first Max bytes
	tail    []byte // the unfinished frame, at most Max bytes
	kept    bool   // tail was handed out as a frame: it is free from the next call on
}

type state uint8

const (
	atStart   state = iota
	inHead          // digits that may be a count: undecided
	inCounted       // a counted frame
	inLine          // a line
	inRest          // what is behind the first Max bytes of a line
)

// Next looks for a frame in data, which follows what the last call consumed. n
// bytes were consumed; the caller goes on with data[n:]. A nil frame means that
// all of data was consumed and no frame is complete. The frame is valid until
// the next call; it lies in data unless parts of it came with earlier data.
// cut: it was longer than Max.
func (f *Framer) Next(data []byte) (frame []byte, cut bool, n int) {
	if f.kept {
		f.reset()
	}
	i := 0
	for !f.bad {
		if f.state == atStart {
			for i < len(data) && isLineEnd(data[i]) {
				i++
			}
		}
		if i == len(data) {
			return nil, false, i
		}
		switch f.state {
		case atStart:
			if f.Framing == FramingLF || f.Framing == FramingAuto && !isDigit(data[i]) {
				f.state = inLine
				continue
			}
			kind, n, count := f.scanCount(data[i:])
			if kind == undecided {
				f.state, f.headLen = inHead, copy(f.head[:], data[i:])
				return nil, false, len(data)
			}
			i += n
			f.begin(kind, count)
		case inHead:
			f.head[f.headLen] = data[i]
			kind, n, count := f.scanCount(f.head[:f.headLen+1])
			if kind == undecided {
				f.headLen++
				i++
				continue
			}
			if n > f.headLen { // the byte at hand is the end of the count
				i++
			}
			behind := f.head[min(n, f.headLen):f.headLen]
			f.begin(kind, count)
			if len(behind) > 0 && !f.bad {
				if f.state == atStart { // count 0: what is behind it begins a line
					f.state = inLine
				}
				f.store(behind)
				f.got = len(behind)
			}
		case inCounted:
			part := data[i:min(len(data), i+f.need-f.got)]
			i += len(part)
			if f.got == 0 && len(part) == f.need {
				f.state, f.counted = atStart, true
				return part[:min(len(part), f.Max)], len(part) > f.Max, i
			}
			f.store(part[:min(len(part), f.Max-min(f.Max, f.got))])
			if f.got += len(part); f.got == f.need && !f.bad {
				f.state, f.counted = atStart, true
				return f.hand(), f.need > f.Max, i
			}
		case inLine:
			end := lineEnd(data[i:])
			part := data[i:]
			if end >= 0 {
				part = data[i : i+end]
			}
			if end >= 0 && len(f.tail) == 0 {
				i += end + 1
				f.state, f.counted = atStart, false
				line := trimCR(part)
				return line[:min(len(line), f.Max)], len(line) > f.Max, i
			}
			over := f.storeLine(part)
			i += len(part)
			switch {
			case f.bad:
			case end >= 0:
				i++
				f.state, f.counted = atStart, false
				if !over {
					f.tail = trimCR(f.tail)
				}
				return f.hand(), over, i
			case over:
				f.state = inRest
				return f.hand(), true, i
			}
		case inRest:
			end := lineEnd(data[i:])
			if end < 0 {
				return nil, false, len(data)
			}
			i += end + 1
			f.state, f.counted = atStart, false
		}
	}
	return nil, false, len(data)
}

// End tells what is left when the stream has ended. Closed by the peer, an
// unfinished line is a frame. Everything else that had begun is lost.
func (f *Framer) End(byPeer bool) (frame []byte, lost bool) {
	if f.kept {
		f.reset()
	}
	was := f.state
	f.state = atStart
	switch {
	case f.bad || was == atStart || was == inRest:
		return nil, f.bad && len(f.tail) > 0
	case !byPeer || was == inCounted:
		return nil, true
	case was == inHead && (f.Framing == FramingOctet || f.counted):
		return nil, true
	case was == inHead:
		return f.head[:f.headLen], false
	}
	if f.tail = trimCR(f.tail); len(f.tail) == 0 {
		return nil, false
	}
	return f.hand(), false
}

// Bad reports whether the stream cannot be gone on with: Grow refused, or
// FramingOctet met something that is no count.
func (f *Framer) Bad() bool { return f.bad }

type countKind uint8

const (
	undecided countKind = iota
	isCount
	noCount
)

// scanCount decides whether s, at the start of a frame, begins with a count. n
// is its length with the space.
func (f *Framer) scanCount(s []byte) (kind countKind, n, count int) {
	const digits = 10
	wide := int64(0) // ten digits are more than an int of 32 bits
	for n < len(s) && isDigit(s[n]) {
		if n == digits {
			return noCount, 0, 0
		}
		wide = wide*10 + int64(s[n]-'0')
		n++
	}
	count = int(min(wide, int64(f.Hard)+1))
	free := f.counted || f.Framing == FramingOctet
	switch {
	case n == len(s):
		return undecided, 0, 0
	case n == 0 || s[n] != ' ' || count > f.Hard:
		return noCount, 0, 0
	case free:
		return isCount, n + 1, count
	case n+1 == len(s):
		return undecided, 0, 0
	case s[n+1] != '<':
		return noCount, 0, 0
	case n+2 == len(s):
		return undecided, 0, 0
	case !isDigit(s[n+2]):
		return noCount, 0, 0
	}
	return isCount, n + 1, count
}

// begin enters the frame that was decided on.
func (f *Framer) begin(kind countKind, count int) {
	f.headLen, f.got, f.need = 0, 0, count
	switch {
	case kind == isCount && count == 0:
		f.state = atStart
	case kind == isCount:
		f.state = inCounted
	case f.Framing == FramingOctet:
		f.bad = true
	default:
		f.state = inLine
	}
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' || c == 0 }

func isDigit(c byte) bool { return c-'0' <= 9 }

// lineEnd is the index of the first LF or NUL in s, or -1. It looks in windows,
// so that a stream without the one is not searched to its end for every other.
func lineEnd(s []byte) int {
	for from, window := 0, 1024; from < len(s); window *= 2 {
		w := s[from:min(len(s), from+window)]
		end := bytes.IndexByte(w, '\n')
		if end >= 0 {
			w = w[:end]
		}
		if nul := bytes.IndexByte(w, 0); nul >= 0 {
			end = nul
		}
		if end >= 0 {
			return from + end
		}
		from += window
	}
	return -1
}

func trimCR(s []byte) []byte {
	n := len(s)
	for n > 0 && s[n-1] == '\r' {
		n--
	}
	return s[:n]
}
