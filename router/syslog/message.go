// Package syslog turns what senders put on the wire into fields: RFC 5424,
// RFC 3164 and the many things that vendors made of it.
//
// It is a leaf: it knows bytes and times, no sockets, no router. Parsing never
// fails and never copies; what cannot be read stays in the text.
package syslog

import "math"

// NoTime is the value of Message.Timestamp when the sender gave no usable time.
const NoTime int64 = math.MinInt64

// What is assumed when a message does not say (RFC 3164 section 4.3.3).
const (
	DefaultFacility uint8 = 1 // user
	DefaultSeverity uint8 = 5 // notice
)

// A Message holds the fields of one syslog message. Its slices point into the
// bytes that were parsed (or, for decoded structured-data values, into memory
// that the caller lent) and are valid as long as those are.
//
// A nil slice is an absent field (RFC 5424 NILVALUE); an empty one is present.
// Text is never absent, only empty.
type Message struct {
	Timestamp  int64  // Unix ns as the sender says; NoTime: none usable
	Facility   uint8  // RFC 5424 section 6.2.1, 0–23
	Severity   uint8  // RFC 5424 section 6.2.1, 0 (emerg) – 7 (debug)
	Hostname   []byte // RFC 5424 section 6.2.4
	AppName    []byte // RFC 5424 section 6.2.5, or the tag of RFC 3164
	ProcID     []byte // RFC 5424 section 6.2.6
	MsgID      []byte // RFC 5424 section 6.2.7
	Structured []Element
	Text       []byte // MSG
}

// An Element is one SD-ELEMENT (RFC 5424 section 6.3.1). Parameters keep the
// order in which they were sent; a name may be repeated.
type Element struct {
	ID     []byte
	Params []Param
}

// A Param is one SD-PARAM (RFC 5424 section 6.3.3), its value unescaped.
type Param struct {
	Name, Value []byte
}
