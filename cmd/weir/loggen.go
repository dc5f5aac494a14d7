package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// A load is what weir loggen sends, and to whom.
type load struct {
	unix, unixgram, tcp, udp string
	rate                     float64
	interval                 time.Duration
	number                   int64
	size, connections        int
	format, framing, file    string
	loop                     bool

	network, address string
	lines            [][]byte // of file
	count, bytes     atomic.Int64
}

func newLoggenCommand() *cobra.Command {
	l := &load{}
	c := &cobra.Command{
		Use:   "loggen (--unix PATH | --unixgram PATH | --tcp HOST:PORT | --udp HOST:PORT)",
		Short: "Send numbered test messages, or the lines of a file, at a rate",
		Long: `Send numbered test messages, or the lines of a file, to a log receiver.

Each message says its number and its connection, "seq: 0000000042, conn: 0003",
both from 0, so that the receiving end can be searched for gaps and doubles.
The last line of the output is the result; the exit code is 1 when the receiver
closes a connection.`,
		Example: `  weir loggen --tcp 127.0.0.1:5514 --rate 2000 --interval 30s
  weir loggen --unix weir.sock --rate 0 --number 1000000
  weir loggen --udp 127.0.0.1:5514 --file old.log --loop --rate 50`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVar(&l.unix, "unix", "", "send to this unix stream socket")
	f.StringVar(&l.unixgram, "unixgram", "", "send to this unix datagram socket, such as /dev/log")
	f.StringVar(&l.tcp, "tcp", "", "send to this TCP address")
	f.StringVar(&l.udp, "udp", "", "send to this UDP address")
	f.Float64Var(&l.rate, "rate", 1000, "messages a second, of all connections together; 0: as fast as it goes")
	f.DurationVar(&l.interval, "interval", 10*time.Second, "how long to send; without end if 0, or if --number or --file is given instead")
	f.Int64Var(&l.number, "number", 0, "how many messages to send, over all connections together; 0: no limit")
	f.IntVar(&l.size, "size", 256, "bytes of a message, with its line feed, without its octet count")
	f.IntVar(&l.connections, "connections", 1, "how many connections to send over")
	f.StringVar(&l.format, "format", "rfc5424", "what the messages look like: rfc5424, rfc3164 or json")
	f.StringVar(&l.framing, "framing", "lf", "how messages are told apart on a stream: lf, or octet (RFC 6587 octet counting)")
	f.StringVar(&l.file, "file", "", "send the lines of this file as they are instead; - is standard input")
	f.BoolVar(&l.loop, "loop", false, "begin --file again at its end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if (l.number > 0 || l.file != "" && !l.loop) && !c.Flags().Changed("interval") {
			l.interval = 0
		}
		if err := l.check(c.Flags().Changed); err != nil {
			return usageError{err}
		}
		if l.file != "" {
			if err := l.read(c.InOrStdin()); err != nil {
				return err
			}
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return l.run(ctx, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

// check finds what cannot be meant and decides the address.
func (l *load) check(given func(flag string) bool) error {
	for network, address := range map[string]string{"unix": l.unix, "unixgram": l.unixgram, "tcp": l.tcp, "udp": l.udp} {
		if !given(network) {
			continue
		}
		if l.network != "" {
			return fmt.Errorf("--%s and --%s: one receiver at a time", min(network, l.network), max(network, l.network))
		}
		l.network, l.address = network, strings.TrimPrefix(address, network+"://")
	}
	stream := l.network == "unix" || l.network == "tcp"
	switch {
	case l.network == "":
		return fmt.Errorf("no receiver: give --unix PATH, --unixgram PATH, --tcp HOST:PORT or --udp HOST:PORT")
	case l.address == "":
		return fmt.Errorf("--%s: the address is empty", l.network)
	case l.rate < 0 || math.IsNaN(l.rate) || math.IsInf(l.rate, 0):
		return fmt.Errorf("--rate %v: want messages a second, or 0 for no limit", l.rate)
	case l.interval < 0:
		return fmt.Errorf("--interval %v: want a time such as 30s, or 0 for no end", l.interval)
	case l.number < 0:
		return fmt.Errorf("--number %d: want a number of messages, or 0 for no limit", l.number)
	case l.connections < 1:
		return fmt.Errorf("--connections %d: at least 1", l.connections)
	case l.framing != string(framingLF) && l.framing != string(framingOctet):
		return fmt.Errorf("--framing %s: want lf or octet", l.framing)
	case given("framing") && !stream:
		return fmt.Errorf("--framing: over %s each datagram is one message", l.network)
	case l.loop && l.file == "":
		return fmt.Errorf("--loop: only together with --file")
	case l.file != "" && (given("size") || given("format")):
		return fmt.Errorf("--file: its lines are sent as they are, without --size and --format")
	}
	if !stream {
		l.framing = string(framingNone)
	}
	switch l.format {
	case "rfc5424", "rfc3164", "json":
	default:
		return fmt.Errorf("--format %s: want rfc5424, rfc3164 or json", l.format)
	}
	if l.file == "" {
		return l.numbered(l.connections - 1).render(time.Now())
	}
	return nil
}

func (l *load) read(in io.Reader) error {
	var data []byte
	var err error
	if l.file == "-" {
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(l.file)
	}
	if err != nil {
		return fmt.Errorf("read the messages: %w", err)
	}
	if l.lines = splitLines(data); len(l.lines) == 0 {
		return fmt.Errorf("read the messages: %s has no lines", l.file)
	}
	return nil
}

func (l *load) numbered(connection int) *numbered {
	return &numbered{format: l.format, framer: framer(l.framing), size: l.size, connection: connection}
}

// run connects, sends, and prints the result. Messages are dealt out to the
// connections evenly.
func (l *load) run(ctx context.Context, out, errout io.Writer) error {
	conns := make([]net.Conn, l.connections)
	for i := range conns {
		conn, err := dial(ctx, l.network, l.address)
		if err != nil {
			return receiverError(l.network, l.address, err)
		}
		defer conn.Close()
		conns[i] = conn
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	var senders, ticker sync.WaitGroup
	for i, conn := range conns {
		s := l.sender(i, conn, start)
		senders.Go(func() {
			if err := s.run(ctx); err != nil {
				cancel(receiverError(l.network, l.address, err))
			}
		})
	}
	done, stop := context.WithCancel(context.Background())
	defer stop()
	if isTerminal(errout) {
		ticker.Go(func() { l.progress(done, errout, start) })
	}
	senders.Wait()
	seconds := time.Since(start).Seconds()
	stop()
	ticker.Wait()

	count, bytes := l.count.Load(), float64(l.bytes.Load())
	size := int64(l.size)
	if l.file == "" {
		bytes = float64(count * size) // no octet counts
	} else if count > 0 {
		size = int64(bytes / float64(count))
	}
	fmt.Fprintf(out, "average rate = %.2f msg/sec, count=%d, time=%.3f, msg size=%d, bandwidth=%.2f kB/sec\n",
		float64(count)/seconds, count, seconds, size, bytes/1024/seconds)
	if err := context.Cause(ctx); err != nil && err != context.Canceled {
		return err
	}
	return nil
}

func (l *load) sender(i int, conn net.Conn, start time.Time) *sender {
	n := int64(l.connections)
	s := &sender{conn: conn, stream: l.framing != string(framingNone), count: &l.count, bytes: &l.bytes}
	s.quota = math.MaxInt64
	if l.number > 0 {
		s.quota = l.number / n
		if int64(i) < l.number%n {
			s.quota++
		}
	}
	if l.interval > 0 {
		s.end = start.Add(l.interval)
	}
	s.pace = pace{rate: l.rate / float64(n), start: start}
	if l.rate > 0 {
		s.pace.phase = time.Duration(float64(i) / l.rate * float64(time.Second))
	}
	if l.file != "" {
		s.feed = &replayed{lines: l.lines, framer: framer(l.framing), next: i, first: i, step: l.connections, loop: l.loop}
	} else {
		s.feed = l.numbered(i)
	}
	return s
}

// progress rewrites one line a second until ctx ends.
func (l *load) progress(ctx context.Context, w io.Writer, start time.Time) {
	last := int64(0)
	for {
		pause(ctx, time.Second)
		if ctx.Err() != nil {
			fmt.Fprint(w, "\r\x1b[K")
			return
		}
		count := l.count.Load()
		fmt.Fprintf(w, "\r\x1b[K%.0fs  %d messages  %d msg/sec", time.Since(start).Seconds(), count, count-last)
		last = count
	}
}
