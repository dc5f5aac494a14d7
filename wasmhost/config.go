package wasmhost

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weirlog/weir/filters/stock"
	"github.com/weirlog/weir/router/config"
)

// Config is what the configuration says about one filter.
type Config struct {
	// Module is the path of a .wasm file, or of a directory with a weir.manifest.yaml, or stock:NAME for a filter that
	// ships inside weir.
	Module string `yaml:"module,required"`
	// SHA256 is the file's hash in hexadecimal; another file is refused. Optional.
	SHA256 string `yaml:"sha256"`
	// ABI is what the module talks: one of the names in docs/filters/abis.md; "": what it looks like.
	ABI string `yaml:"abi"`
	// Function is the export that is called for each message, in ABIs that do not name it.
	Function string `yaml:"function"`
	// EventFormat is the form of records in the ABI of Fluent Bit: json or msgpack.
	EventFormat string `yaml:"event_format"`
	// Mode is how programs that read standard input are run: batch or stream.
	Mode string `yaml:"mode"`
	// Config is handed to the guest as it is; absent is {}.
	Config json.RawMessage `yaml:"config"`
	// Memory bounds the linear memory of one instance; rounded down to pages of 64 KiB.
	Memory config.Size `yaml:"memory"`
	// Time bounds the guest's own work on one message. The interpreter gets 20 times as much.
	Time time.Duration `yaml:"time"`
	// InitTime bounds the start of an instance: its start function, _initialize and weir_init together.
	InitTime time.Duration `yaml:"init_time"`
	// OnError says what becomes of a message on which the filter fails.
	OnError string `yaml:"on_error"`
	// Instances is per-core, or one for filters that keep state.
	Instances string `yaml:"instances"`
	// Exceptions lets the module throw and catch exceptions (exnref).
	Exceptions bool `yaml:"exceptions"`
	// FS are the directories and files that the guest may use; none by default.
	FS []Grant `yaml:"fs"`
	// Env are the environment variables that the guest sees; none by default.
	Env config.Map[config.Secret] `yaml:"env"`
	// Recycle says when an instance has served long enough; nil: never.
	Recycle *Recycle `yaml:"recycle"`
}

// Recycle replaces an instance that is well, between two batches, when it has had so many messages or its memory has
// grown so large: for guests that leak. 0 is never.
type Recycle struct {
	Messages int         `yaml:"messages"`
	Memory   config.Size `yaml:"memory"`
}

// What becomes of a message on which a filter fails.
const (
	Reject = "reject" // to the dead letters
	Pass   = "pass"   // on, as it came
	Drop   = "drop"   // gone
	Stop   = "stop"   // to the dead letters, and weir drains and stops
)

// Whether lanes have instances of their own.
const (
	PerCore = "per-core"
	One     = "one"
)

const (
	page           = 64 << 10
	mostMemory     = 4<<30 - page
	shortestTime   = time.Millisecond
	defaultMemory  = 16 << 20
	defaultTime    = 50 * time.Millisecond
	defaultStarted = 10 * time.Second
)

// Defaults fills in what a configuration leaves out.
func (c *Config) Defaults() {
	*c = Config{Memory: defaultMemory, Time: defaultTime, InitTime: defaultStarted, OnError: Reject, Instances: PerCore, Mode: ModeBatch, EventFormat: formatJSON}
}

// Stock is the name of the built-in filter that Module asks for; ok is false when it is a path.
func (c *Config) Stock() (name string, ok bool) { return strings.CutPrefix(c.Module, "stock:") }

// Check tells what is wrong in the values themselves; whether the module runs is seen by [Host.Load].
func (c *Config) Check() []config.Problem {
	var p []config.Problem
	if c.Module == "" {
		p = append(p, config.Problem{Path: "module", What: "no module", Hint: "the path of a .wasm file, or stock:NAME"})
	}
	if name, ok := c.Stock(); ok {
		for _, problem := range config.OneOf("module", name, stock.Names()...) {
			problem.What = fmt.Sprintf("no stock filter %q", name)
			p = append(p, problem)
		}
	}
	if b, err := hex.DecodeString(c.SHA256); c.SHA256 != "" && (err != nil || len(b) != 32) {
		p = append(p, config.Problem{Path: "sha256", What: "not a SHA-256 hash", Hint: "64 hexadecimal digits, as sha256sum prints them"})
	}
	if c.Memory < page || c.Memory > mostMemory {
		p = append(p, config.Problem{Path: "memory", What: fmt.Sprintf("%v of memory", c.Memory), Hint: "64KiB to just under 4GiB"})
	}
	if c.Time < shortestTime || c.Time > time.Minute {
		p = append(p, config.Problem{Path: "time", What: fmt.Sprintf("%s for one message", config.TimeText(c.Time)), Hint: "1ms to 1m"})
	}
	if c.InitTime < shortestTime || c.InitTime > 10*time.Minute {
		p = append(p, config.Problem{Path: "init_time", What: fmt.Sprintf("%s for the start", config.TimeText(c.InitTime)), Hint: "1ms to 10m"})
	}
	if r := c.Recycle; r != nil && r.Messages < 0 {
		p = append(p, config.Problem{Path: "recycle.messages", What: fmt.Sprintf("%d messages", r.Messages), Hint: "100000; 0 is never"})
	}
	if r := c.Recycle; r != nil && r.Memory > c.Memory {
		p = append(p, config.Problem{Path: "recycle.memory", What: fmt.Sprintf("%v, but the filter's memory is %v", r.Memory, c.Memory), Hint: "less than memory"})
	}
	p = append(p, c.checkGrants()...)
	if c.ABI != "" {
		p = append(p, config.OneOf("abi", c.ABI, abiNames()...)...)
	}
	p = append(p, config.OneOf("event_format", c.EventFormat, formatJSON, formatMsgpack)...)
	p = append(p, config.OneOf("mode", c.Mode, ModeBatch, ModeStream)...)
	p = append(p, config.OneOf("on_error", c.OnError, Reject, Pass, Drop, Stop)...)
	return append(p, config.OneOf("instances", c.Instances, PerCore, One)...)
}
