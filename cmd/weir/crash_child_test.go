package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
)

// crashCommand is weir with a source that acknowledges, at the unix socket that
// crashSocket names. TestMain makes this test's own file answer to that name.
const (
	crashCommand = "weir-crash"
	crashSocket  = "WEIR_CRASH_SOCKET"
)

// crashChild is the process that is killed.
func crashChild() {
	root := &cobra.Command{Use: crashCommand, SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().String("log-format", "text", "")
	root.PersistentFlags().String("log-level", "info", "")
	c := newRunCommand()
	c.RunE = func(c *cobra.Command, _ []string) error {
		src := router.SourceConfig{Name: "acking", MaxMessage: 64 << 10, Source: &acking{socket: os.Getenv(crashSocket)}}
		return run(c, src)
	}
	root.AddCommand(c)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "weir:", err)
		os.Exit(exitFailed)
	}
	os.Exit(exitFine)
}

// acking is a source of lines "number text" over a unix socket. Each connection
// begins with the sender's name. "ack number" goes back when the message is safe,
// "nack number" when that cannot come true any more. After "name resume" the answer is first
// "last number", and the sender goes on behind that.
type acking struct{ socket string }

func (a *acking) Run(ctx context.Context, in router.Inlet) error {
	os.Remove(a.socket) // of the process before, which is dead
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var readers sync.WaitGroup
	defer readers.Wait()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		readers.Go(func() {
			// The connection stays open for acknowledgements until the process ends.
			if err := (&ackingSender{in: in, conn: c}).run(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "acking:", err)
			}
		})
	}
}

type ackingSender struct {
	in      router.Inlet
	name    string
	resumes bool
	mu      sync.Mutex // of writes to conn
	conn    net.Conn
}

func (s *ackingSender) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	lines := bufio.NewReaderSize(s.conn, 64<<10)
	first, err := lines.ReadString('\n')
	if err != nil {
		return nil
	}
	s.name, s.resumes = strings.CutSuffix(strings.TrimSpace(first), " resume")
	if s.resumes {
		last, known := s.in.Last(s.name)
		if !known {
			return errors.New("there is no disk buffer that could know where to resume")
		}
		s.tell("last", []uint64{last})
	}
	origin := &router.Origin{Source: "acking", Peer: s.name}
	for {
		if _, err := lines.Peek(1); err != nil {
			return nil
		}
		b, err := s.in.Take(ctx, 32<<10, 1+rand.IntN(s.in.Limits().Messages))
		if err != nil {
			return nil
		}
		numbers, err := s.gather(b, origin, lines)
		if err != nil {
			return err
		}
		mark := router.Mark{}
		if s.resumes && len(numbers) > 0 {
			mark = router.Mark{Sender: s.name, Last: numbers[len(numbers)-1]}
		}
		b.Receipt(mark, func(safe bool) {
			if safe {
				s.tell("ack", numbers)
			} else {
				s.tell("nack", numbers)
			}
		})
		s.in.Deliver(b)
	}
}

// gather reads a line, and those behind it that are there already, as far as there is room in the batch. The
// line that a dying connection has torn is none.
func (s *ackingSender) gather(b *router.Batch, origin *router.Origin, lines *bufio.Reader) (numbers []uint64, err error) {
	for size := 0; size < 32<<10-512 && !b.Full(); {
		there, _ := lines.Peek(lines.Buffered())
		if len(numbers) > 0 && bytes.IndexByte(there, '\n') < 0 {
			break
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		number, text, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		n, err := strconv.ParseUint(string(number), 10, 64)
		if err != nil {
			return nil, err
		}
		m := b.Add(origin)
		m.Text = b.Copy(fmt.Appendf(nil, "%s %d %s", s.name, n, text))
		m.Raw = m.Text
		m.Serial, m.Received = n, time.Now().UnixNano()
		if bytes.HasPrefix(text, []byte("debug")) {
			m.Severity = 7
		}
		numbers = append(numbers, n)
		size += len(line)
	}
	return numbers, nil
}

func (s *ackingSender) tell(word string, numbers []uint64) {
	var out []byte
	for _, n := range numbers {
		out = fmt.Appendf(out, "%s %d\n", word, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.Write(out)
}
