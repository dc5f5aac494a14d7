package socket

import (
	"fmt"
	"net"
	"runtime"
	"testing"
)

func TestIdleConnectionsCostAFewKilobytes(t *testing.T) {
	const n = 500
	f := start(t, flowOptions{}, func(c *Config) { c.Listen = []string{"unix://" + t.TempDir() + "/s"} })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = f.dial(0)
		send(t, conns[i], fmt.Sprintf("<13>app: hello %d\n", i))
	}
	f.store.await(t, n)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	heap, stack := int(after.HeapAlloc-before.HeapAlloc)/n, int(after.StackInuse-before.StackInuse)/n
	t.Logf("%d B heap, %d B stack", heap, stack)
	if heap+stack > 24<<10 { // both ends of the connection are ours here
		t.Errorf("%d B heap and %d B stack for each", heap, stack)
	}
}
