package sqlstore

import "github.com/weirlog/weir/router/config"

// The forms in which settings are written that read themselves, for the schema.

// Forms implements config.Former.
func (c *Column) Forms() []config.Form {
	type plain Column
	return []config.Form{{Value: new(string)}, {Value: new(plain)}}
}

// Forms implements config.Former.
func (c *Constant) Forms() []config.Form {
	return []config.Form{{Value: new(string)}, {Value: new(float64)}, {Value: new(bool)}}
}

// Forms implements config.Former.
func (f *File) Forms() []config.Form { return []config.Form{{Value: new(string)}} }

// Forms implements config.Former.
func (c *OnConflict) Forms() []config.Form {
	type plain OnConflict
	return []config.Form{{Words: []string{"ignore"}}, {Value: new(plain)}}
}
