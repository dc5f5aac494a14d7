// Package router is the heart of weir: the nouns (Message, Batch, Source,
// Filter, Destination, Route) and the flow between them.
//
// A batch of messages is read, filtered and handed over by the goroutine that
// reads; each destination has one goroutine, its writer, that gathers messages
// into transactions. Between the two lies one hand-off and one valve: the
// memory budget, at which sources wait (Inlet.Take) and nobody else.
package router

import (
	"net/netip"

	"github.com/weirlog/weir/router/syslog"
)

// NoTime is the value of Message.Timestamp when the sender gave no usable time.
const NoTime = syslog.NoTime

// A Message is one log record. Its bytes belong to its Batch and die with it.
//
// Bytes and slices of a Message are never changed in place, because copies of
// it on other routes may share them: an edit puts new ones into their place.
type Message struct {
	syslog.Message

	Origin   *Origin // listener and peer; shared by all messages of a connection; never nil
	Received int64   // Unix ns, from our clock
	Raw      []byte  // as received, framing removed; nil: not known (created by a filter)
	Fields   []Field // what filters added, in order; names are unique
	Serial   uint64  // number that a sender that resumes gave it; 0: none

	fate   fate     // what became of it; set by Batch
	size   int      // Size, once the filters are done with it
	to     uint64   // destinations of the route, a bit each; 0: all of them; set by Batch.Route
	behind *Message // the next of those that the filter at work created behind it; see Batch.Emit
}

// An Origin says where messages came from. It is immutable and may outlive the
// connection.
type Origin struct {
	Source   string     // name of the source in the configuration
	Listener string     // as in `listen`, such as "udp://127.0.0.1:5514"
	Peer     string     // the sender's address without a port; "" where there is none (unix sockets)
	Addr     netip.Addr // Peer, parsed; the zero Addr where there is none
}

// Element and Param are RFC 5424 structured data; see package syslog.
type (
	Element = syslog.Element
	Param   = syslog.Param
)

// A Field is a named, typed value that is not one of the message's own.
type Field struct {
	Name  []byte
	Value Value
}

// Field returns the field of that name, or nil. The pointer is valid until the
// fields are edited.
func (m *Message) Field(name []byte) *Field {
	for i := range m.Fields {
		if string(m.Fields[i].Name) == string(name) {
			return &m.Fields[i]
		}
	}
	return nil
}

// Size is what the message weighs against flush_bytes: its bytes, not its structs.
func (m *Message) Size() int {
	n := len(m.Text) + len(m.Hostname) + len(m.AppName) + len(m.ProcID) + len(m.MsgID)
	for i := range m.Structured {
		n += len(m.Structured[i].ID)
		for j := range m.Structured[i].Params {
			n += len(m.Structured[i].Params[j].Name) + len(m.Structured[i].Params[j].Value)
		}
	}
	for i := range m.Fields {
		n += len(m.Fields[i].Name) + 8 + len(m.Fields[i].Value.Bytes)
	}
	return n
}
