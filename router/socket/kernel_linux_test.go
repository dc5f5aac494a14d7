package socket

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDatagramsThatTheKernelDropsAreCounted fills a small receive buffer that
// nobody reads yet.
func TestDatagramsThatTheKernelDropsAreCounted(t *testing.T) {
	f := start(t, flowOptions{idle: true}, func(c *Config) { c.Listen, c.ReceiveBuffer = []string{"udp://127.0.0.1:0"}, 16<<10 })
	c := f.dial(0)
	sent := 0
	for range 500 {
		send(t, c, fmt.Sprintf("<13>app: %d %s", sent, strings.Repeat("x", 500)))
		sent++
	}
	f.run()
	until(t, "all are accounted for", func() bool {
		send(t, c, "<13>app: one more, which carries the count")
		sent++
		time.Sleep(5 * time.Millisecond)
		return len(f.store.all())+int(f.intake().Missed["kernel"]) == sent
	})
	if n := f.intake().Missed["kernel"]; n < 100 {
		t.Errorf("only %d dropped", n)
	}
}

func TestACappedReceiveBufferIsTold(t *testing.T) {
	f := start(t, flowOptions{}, func(c *Config) { c.Listen, c.ReceiveBuffer = []string{"udp://127.0.0.1:0"}, 1<<30 })
	raw, err := f.src.packets[0].udp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	granted, err := setReceiveBuffer(raw, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if capped := granted < 1<<30; capped != strings.Contains(f.log.String(), "net.core.rmem_max") {
		t.Errorf("granted %d, told %q", granted, f.log)
	}
}
