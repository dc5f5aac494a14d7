package wasmhost

import "math/bits"

// nearKeys are names that people give to what the message calls otherwise.
var nearKeys = [...]struct{ given, own string }{
	{"host", "hostname"}, {"host_name", "hostname"}, {"fromhost", "hostname"},
	{"level", "severity"}, {"log_level", "severity"}, {"loglevel", "severity"}, {"lvl", "severity"},
	{"priority", "severity"}, {"pri", "severity"}, {"severity_text", "severity"}, {"syslogseverity", "severity"},
	{"syslogfacility", "facility"}, {"facility_text", "facility"},
	{"msg", "message"}, {"text", "message"}, {"body", "message"},
	{"program", "app_name"}, {"programname", "app_name"}, {"appname", "app_name"}, {"app-name", "app_name"}, {"app", "app_name"},
	{"tag", "app_name"}, {"syslogtag", "app_name"}, {"ident", "app_name"},
	{"pid", "proc_id"}, {"procid", "proc_id"}, {"msgid", "msg_id"},
	{"time", "timestamp"}, {"ts", "timestamp"}, {"@timestamp", "timestamp"}, {"datetime", "timestamp"},
	{"receivedat", "received_at"}, {"timegenerated", "received_at"},
	{"sd", "structured_data"}, {"structured-data", "structured_data"}, {"structureddata", "structured_data"},
	{"rawmsg", "raw"}, {"rawmessage", "raw"}, {"raw_message", "raw"}, {"client", "peer"}, {"fromhost-ip", "peer"},
}

const _ = -uint(len(nearKeys) / 65) // Guest.near has a bit for each

// nearly tells, once for each name, that a key is a field and not what the message calls otherwise.
func (g *Guest) nearly(key []byte) {
	if len(key) > 16 {
		return
	}
	told := g.near.Load()
	if bits.OnesCount64(told) == len(nearKeys) {
		return
	}
	for i, k := range nearKeys {
		if k.given != string(key) {
			continue
		}
		if bit := uint64(1) << i; g.near.Or(bit)&bit == 0 {
			g.log.Info("filter uses a field whose name is nearly one of the message's own", "field", k.given, "message_has", k.own)
		}
		return
	}
}
