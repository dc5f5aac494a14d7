package deadletter

import (
	"time"

	"github.com/weirlog/weir/router/config"
)

// A Config is `dead_letters:` of the configuration file.
type Config struct {
	Size     config.Size   `yaml:"size"`      // bytes of the database
	Age      time.Duration `yaml:"age,off"`   // older letters are removed; off: they stay
	WhenFull string        `yaml:"when_full"` // drop_oldest or block
}

// What happens when the store is full.
const (
	DropOldest = "drop_oldest" // the oldest letters make room
	Block      = "block"       // Keep fails: who rejects has to wait
)

const minSize = 256 << 10

// Defaults implements config.Defaulter.
func (c *Config) Defaults() {
	c.Size, c.Age, c.WhenFull = 64<<20, 30*24*time.Hour, DropOldest
}

// Check implements config.Checker.
func (c Config) Check() []config.Problem {
	bad := config.OneOf("when_full", c.WhenFull, DropOldest, Block)
	if c.Size < minSize {
		bad = append(bad, config.Problem{Path: "size", What: "too small to keep letters in", Hint: "64MiB; at least 256KiB"})
	}
	if c.Age < 0 || c.Age > 0 && c.Age < time.Minute {
		bad = append(bad, config.Problem{Path: "age", What: "letters would be gone before anybody reads them", Hint: "30d; at least 1m, or off"})
	}
	return bad
}
