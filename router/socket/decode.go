package socket

import (
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/syslog"
)

// A Decoder turns frames into messages in the way of a source's settings. It
// holds scratch space and serves one goroutine at a time.
type Decoder struct {
	syslog syslog.Parser
	record *router.RecordParser // of format json
	mode   hostMode
}

type hostMode uint8

const (
	sentOrPeer hostMode = iota
	sent
	peer
)

// NewDecoder returns a decoder for settings that Check found good.
func NewDecoder(c *Config) (*Decoder, error) {
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return nil, err
	}
	d := &Decoder{syslog: syslog.Parser{Zone: zone, Format: c.format()}}
	if c.Format == "json" {
		d.record = new(router.RecordParser)
	}
	switch c.Hostname {
	case "sent":
		d.mode = sent
	case "peer":
		d.mode = peer
	}
	return d, nil
}

// Decode fills m, which b.Add returned, from raw, which lies in b's memory: one
// message without its framing. received is Unix ns. host is who sent it, for
// the host that a message does not tell; nil: not known. Decode returns false
// when there is no message in raw.
func (d *Decoder) Decode(m *router.Message, raw []byte, received int64, host []byte, b *router.Batch) bool {
	if !d.syslog.Parse(&m.Message, raw, received, b) {
		return false
	}
	m.Received, m.Raw = received, raw
	if d.record != nil && len(m.Text) > 0 {
		text := m.Text
		m.Text = text[:0]
		if d.record.Parse(m, text, b) != nil { // no object: text
			m.Text = text
		}
	}
	if host != nil && (d.mode == peer || d.mode == sentOrPeer && m.Hostname == nil) {
		m.Hostname = host
	}
	return true
}
