package wasmhost

import "github.com/weirlog/weir/router"

// nearKey is which of the message's own values people mean who call it so; KeyField: none.
func nearKey(key []byte) router.Key {
	switch string(key) {
	case "host", "host_name", "fromhost":
		return router.KeyHostname
	case "level", "log_level", "loglevel", "lvl", "priority", "pri", "severity_text", "syslogseverity":
		return router.KeySeverity
	case "syslogfacility", "facility_text":
		return router.KeyFacility
	case "msg", "text", "body":
		return router.KeyMessage
	case "program", "programname", "appname", "app-name", "app", "tag", "syslogtag", "ident":
		return router.KeyAppName
	case "pid", "procid":
		return router.KeyProcID
	case "msgid":
		return router.KeyMsgID
	case "time", "ts", "@timestamp", "datetime":
		return router.KeyTimestamp
	case "receivedat", "timegenerated":
		return router.KeyReceivedAt
	case "sd", "structured-data", "structureddata":
		return router.KeyStructuredData
	case "rawmsg", "rawmessage", "raw_message":
		return router.KeyRaw
	case "client", "fromhost-ip":
		return router.KeyPeer
	}
	return router.KeyField
}

// nearly tells, once for each of the message's own values, that a filter uses a field whose name is nearly that.
func (g *Guest) nearly(key []byte) {
	own := nearKey(key)
	if own == router.KeyField {
		return
	}
	if bit := uint64(1) << own; g.near.Load()&bit == 0 && g.near.Or(bit)&bit == 0 {
		g.log.Info("filter uses a field whose name is nearly one of the message's own", "field", string(key), "message_has", router.KeyNames[own])
	}
}
