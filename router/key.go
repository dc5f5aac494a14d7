package router

// A Key names one of the message's own values; every other name is a field.
// Keys are literal: a dot in a name means nothing (filters/ABI.md, Keys).
type Key uint8

const (
	KeyField Key = iota // none of the message's own
	KeyTimestamp
	KeyFacility
	KeySeverity
	KeyHostname
	KeyAppName
	KeyProcID
	KeyMsgID
	KeyMessage
	// From here on: what a filter may read but not write.
	KeyReceivedAt
	KeyStructuredData
	KeyRaw
	KeySource
	KeyListener
	KeyPeer
	KeyMessageB64
)

// KeyNames lists the names of the message's own keys, indexed by Key.
var KeyNames = [...]string{"", "timestamp", "facility", "severity", "hostname", "app_name", "proc_id", "msg_id", "message",
	"received_at", "structured_data", "raw", "source", "listener", "peer", "message_b64"}

// LookupKey tells which of the message's own keys name is. It does not allocate.
func LookupKey(name []byte) Key {
	switch string(name) {
	case "timestamp":
		return KeyTimestamp
	case "facility":
		return KeyFacility
	case "severity":
		return KeySeverity
	case "hostname":
		return KeyHostname
	case "app_name":
		return KeyAppName
	case "proc_id":
		return KeyProcID
	case "msg_id":
		return KeyMsgID
	case "message":
		return KeyMessage
	case "received_at":
		return KeyReceivedAt
	case "structured_data":
		return KeyStructuredData
	case "raw":
		return KeyRaw
	case "source":
		return KeySource
	case "listener":
		return KeyListener
	case "peer":
		return KeyPeer
	case "message_b64":
		return KeyMessageB64
	}
	return KeyField
}

// ReadOnly reports whether filters may not write the key.
func (k Key) ReadOnly() bool { return k >= KeyReceivedAt }
