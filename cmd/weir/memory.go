package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/file"
	"github.com/weirlog/weir/router/spool"
	"github.com/weirlog/weir/wasmhost"
)

// memorySum is what weir needs when everything is full.
type memorySum struct {
	messages, guests config.Size
	buffers          config.Size // what is on its way into disk buffers and out of them
	linear           config.Size // of guests, what is not on Go's heap
	rows             []string    // one for each filter
}

const (
	ownMemory  = 48 << 20 // what weir needs without messages and filters
	codeGrowth = 8        // bytes of machine code and its tables for each byte of a module, at most
)

// memorySum adds up what loaded filters may take. All filters are loaded.
func (s *settings) memorySum(guests []*wasmhost.Guest) memorySum {
	sum := memorySum{messages: s.Memory}
	for _, e := range s.Destinations {
		if e.Value.Buffer.Disk > 0 {
			// A transaction's bytes, and as much for its structs; what is not synced, in a buffer that doubles.
			sum.buffers += config.Size(e.Value.connections()) * 2 * (e.Value.FlushBytes + spool.MostUnsynced)
		}
	}
	for i, e := range s.Filters {
		n := runtime.GOMAXPROCS(0)
		if e.Value.Instances == wasmhost.One {
			n = 1
		}
		r := guests[i].Report()
		code := config.Size(r.Size) * codeGrowth
		linear := e.Value.Memory * config.Size(n)
		one := linear + code
		row := fmt.Sprintf("filter %s: %d × %v and %v of code", e.Name, n, e.Value.Memory, about(code))
		if r.ABI == "extism" { // a memory beside the guest's, as large, on Go's heap
			one += linear
			row += ", and as much for the plug-in's blocks"
		}
		if r.Keeps {
			one += wasmhost.MostKept
			row += fmt.Sprintf(", and %v of keys", config.Size(wasmhost.MostKept))
		}
		sum.guests += one
		sum.linear += linear
		sum.rows = append(sum.rows, fmt.Sprintf("  %9s  %s", about(one), row))
	}
	return sum
}

func (m memorySum) total() config.Size { return m.messages + m.buffers + m.guests + ownMemory }

func (s *settings) printSum(w io.Writer, guests []*wasmhost.Guest) {
	sum := s.memorySum(guests)
	fmt.Fprintf(w, "memory, when everything is full:\n")
	fmt.Fprintf(w, "  %9s  messages in flight (memory:)\n", about(sum.messages))
	if sum.buffers > 0 {
		fmt.Fprintf(w, "  %9s  disk buffers: of each connection what is not yet synced, and a transaction that is read back\n", about(sum.buffers))
	}
	for _, row := range sum.rows {
		fmt.Fprintln(w, row)
	}
	fmt.Fprintf(w, "  %9s  weir itself\n", about(ownMemory))
	fmt.Fprintf(w, "  %9s  in all\n", about(sum.total()))
}

// about is a size in MiB, for sums.
func about(n config.Size) string {
	switch {
	case n >= 10<<40:
		return fmt.Sprintf("%.1f TiB", float64(n)/(1<<40))
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// warnMachine tells when this machine has less memory than weir may need.
func warnMachine(doc *config.Document, needs config.Size) {
	text, _ := os.ReadFile("/proc/meminfo")
	var has config.Size
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &has); err != nil || needs <= has<<10 {
		return
	}
	doc.Warnf(doc.At("memory"), "a smaller memory:, fewer filters or instances: one", "weir may need %s, and this machine has %s: no longer holds that memory is bounded", about(needs), about(has<<10))
}

// tryMemory asks the router whether the memory suffices for its shares.
func (s *settings) tryMemory(doc *config.Document) {
	var all config.Size
	for _, e := range s.Sources {
		if doc.Wrong("sources", e.Name) || doc.Wrong("memory") && s.Memory >= leastMemory {
			return // it did not decode
		}
		least := e.Value.MaxMessage
		if slices.ContainsFunc(e.Value.Listen, func(l string) bool { return strings.HasPrefix(l, "tcp://") || strings.HasPrefix(l, "unix://") }) {
			least += config.Size(e.Value.MaxConnections) * connectionMemory
		}
		all += least
		key, smaller := "max_connections", "fewer connections"
		if e.Value.MaxMessage > least/2 {
			key, smaller = "max_message", "a smaller max_message"
		}
		if least > s.Memory {
			doc.Errorf(doc.At("sources", e.Name, key), fmt.Sprintf("memory: %v, or %s", roundUp(least), smaller),
				"source %s: %d connections of %v and one message of %v are more than memory: %v", e.Name, e.Value.MaxConnections, config.Size(connectionMemory), e.Value.MaxMessage, s.Memory)
		}
	}
	if all > s.Memory && doc.Err() == nil {
		doc.Errorf(doc.At("memory"), fmt.Sprintf("memory: %v, or smaller max_connections", roundUp(all)),
			"all sources together: their connections, of %v each, and a message of each are %v, which is more than memory: %v", config.Size(connectionMemory), all, s.Memory)
	}
	if doc.Err() != nil {
		return
	}
	c := s.routerConfig()
	for i, e := range s.Destinations {
		c.Destinations[i].Destination = file.Discard{}
		if e.Value.Buffer.Disk > 0 {
			c.Destinations[i].WhenFull = router.Block // sources wait for the disk, whatever holds when the buffer is full
		}
	}
	for i := range c.Routes {
		for k := range c.Routes[i].Filters {
			c.Routes[i].Filters[k].Filters = make([]router.Filter, runtime.GOMAXPROCS(0))
		}
	}
	if _, err := router.New(c); err != nil {
		doc.Errorf(doc.At("memory"), "", "%v", err)
	}
}

// connectionMemory is what an idle connection costs.
const connectionMemory = 4 << 10

func roundUp(n config.Size) config.Size { return (n + 1<<20 - 1) &^ (1<<20 - 1) }
