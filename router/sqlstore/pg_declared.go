package sqlstore

import (
	"strings"

	"github.com/weirlog/weir/router"
)

// pgDeclared is the type of a column that weir creates.
func (c *column) pgDeclared() string {
	if c.declared != "" {
		return c.declared
	}
	switch c.natural() {
	case cellTime:
		if c.ref.Key == router.KeyReceivedAt {
			return "timestamptz NOT NULL"
		}
		return "timestamptz"
	case cellInt:
		if c.fill == fillConstant {
			return "bigint"
		}
		return "smallint"
	case cellBool:
		return "boolean"
	case cellFloat:
		return "double precision"
	case cellJSON:
		return "jsonb"
	}
	if c.raw() {
		return "bytea"
	}
	return "text"
}

// pgNames are the words for types of a known form. Where one begins with another, the longer comes first.
var pgNames = []struct {
	name string
	kind pgKind
}{
	{"bigint", pgInt8}, {"int8", pgInt8}, {"integer", pgInt4}, {"int4", pgInt4}, {"int2", pgInt2}, {"int", pgInt4}, {"smallint", pgInt2},
	{"real", pgFloat4}, {"float4", pgFloat4}, {"float", pgFloat8}, {"double precision", pgFloat8}, {"bool", pgBool},
	{"text", pgText}, {"varchar", pgText}, {"char", pgText}, {"citext", pgText}, {"jsonb", pgJSONB}, {"json", pgJSON},
	{"bytea", pgBytea}, {"uuid", pgUUID}, {"date", pgDate}, {"timestamptz", pgTimestamptz}, {"timestamp with ", pgTimestamptz}, {"timestamp", pgTimestamp},
}

// pgKind is the kind of the type that weir asks for; pgOther when that cannot be told.
func (c *column) pgKind() pgKind {
	declared := strings.ToLower(c.pgDeclared())
	for _, n := range pgNames {
		if strings.HasPrefix(declared, n.name) {
			return n.kind
		}
	}
	return pgOther
}
