package main

// What other programs call the keys of the file, and of a route and a destination in it.

func (*settings) OtherNames() map[string]string {
	const levels = "the option --log-level of weir"
	return map[string]string{
		"inputs": "sources", "input": "sources", "receivers": "sources", "listeners": "sources", "listener": "sources",
		"outputs": "destinations", "output": "destinations", "sinks": "destinations", "sink": "destinations", "targets": "destinations", "exporters": "destinations",
		"transforms": "filters", "processors": "filters", "parsers": "format: of a source",
		"pipeline": "sources, destinations and routes", "pipelines": "routes", "flows": "routes", "rules": "routes", "rulesets": "routes", "log": "routes",
		"log_level": levels, "loglevel": levels, "logging": levels, "log_format": "the option --log-format of weir",
		"data_dir": "state_dir", "workdir": "state_dir", "work_directory": "state_dir", "metrics": "admin", "api": "admin", "http": "admin", "dead_letter_queue": "dead_letters", "dlq": "dead_letters",
	}
}

func (*route) OtherNames() map[string]string {
	const all = "remove it: each route of a source gets what its match takes"
	names := map[string]string{
		"source": "from", "sources": "from", "input": "from", "inputs": "from", "in": "from",
		"destination": "to", "destinations": "to", "output": "to", "outputs": "to", "sink": "to", "sinks": "to", "target": "to", "targets": "to", "out": "to",
		"if": "match", "when": "match", "where": "match", "condition": "match", "conditions": "match", "selector": "match",
		"default": "else: true", "rest": "else: true", "fallback": "else: true", "otherwise": "else: true", "catch_all": "else: true",
		"stop": all, "final": all, "continue": all, "transforms": "filters", "processors": "filters",
	}
	return names
}

func (*destinationKeys) OtherNames() map[string]string {
	const kind = "remove it: sqlite:, postgres: or another key says the kind"
	return map[string]string{
		"filters": "routes.NAME.filters: routes have filters", "filter": "routes.NAME.filters: routes have filters", "match": "routes.NAME.match: routes have a match",
		"inputs": "routes.NAME.to: a route names its destinations", "from": "routes.NAME.to: a route names its destinations", "type": kind, "kind": kind,
		"batch_size": "flush_lines", "batch_bytes": "flush_bytes", "batch_timeout": "flush_timeout", "flush_interval": "flush_timeout", "queue": "buffer", "disk_buffer": "buffer: {disk: 1GiB}",
	}
}
