package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/socket"
)

func newParseCommand() *cobra.Command {
	p := &parsing{received: time.Now}
	p.Defaults()
	p.Hostname = "sent"
	cmd := &cobra.Command{
		Use:   "parse",
		Short: "Read messages from standard input as a source would, and print them as record JSON",
		Long: `Parse reads standard input as a stream source would and prints what it understood: record JSON, one message a line.
With --framing none all of the input is one message, as a datagram is.`,
		Example: `  printf '<165>1 2026-01-01T00:00:04.003Z web1 shopd 8710 - - checkout done' | weir parse --framing none
  weir parse --timezone Europe/Berlin < /var/log/messages`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Format, "format", p.Format, "auto, rfc5424, rfc3164, json or raw")
	flags.StringVar(&p.Framing, "framing", p.Framing, "how messages are told apart: auto, octet, lf, or none")
	receivedAt := flags.String("received-at", "", "take this RFC 3339 `time` for the clock")
	flags.StringVar(&p.Timezone, "timezone", p.Timezone, "of timestamps that carry none: an IANA `zone`")
	maxMessage := flags.String("max-message", "64KiB", "cut longer messages; a `size`")
	cmd.RunE = func(c *cobra.Command, _ []string) (err error) {
		if *receivedAt != "" {
			at, err := time.Parse(time.RFC3339, *receivedAt)
			if err != nil {
				return usagef("--received-at %s: want an RFC 3339 time, such as 2026-01-01T00:00:05Z", *receivedAt)
			}
			p.received = func() time.Time { return at }
		}
		if p.MaxMessage, err = messageSizeFlag(*maxMessage); err != nil {
			return err
		}
		if err := p.open(); err != nil {
			return err
		}
		p.out = bufio.NewWriterSize(c.OutOrStdout(), 64<<10)
		if err := p.run(c.InOrStdin()); err != nil {
			return err
		}
		if p.cut > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "cut at %v: %d\n", p.MaxMessage, p.cut)
		}
		if p.lost {
			fmt.Fprintln(c.ErrOrStderr(), "the input ends inside a message, or is not framed as it should be: the rest is left out")
		}
		return nil
	}
	return cmd
}

// parsing is one run of weir parse.
type parsing struct {
	socket.Config
	received func() time.Time
	decoder  *socket.Decoder
	framer   *socket.Framer // nil: all of the input is one message
	out      *bufio.Writer
	line     []byte
	cut      int  // messages over MaxMessage
	lost     bool // something that had begun was no message
}

// open makes of the flags what reads.
func (p *parsing) open() (err error) {
	if words := []string{"auto", "rfc5424", "rfc3164", "json", "raw"}; !slices.Contains(words, p.Format) {
		return usagef("--format %s: want one of %v", p.Format, words)
	}
	p.framer = &socket.Framer{Max: int(p.MaxMessage), Hard: max(1<<20, int(p.MaxMessage))}
	switch p.Framing {
	case "none":
		p.framer = nil
	case "auto":
	case "octet":
		p.framer.Framing = socket.FramingOctet
	case "lf":
		p.framer.Framing = socket.FramingLF
	default:
		return usagef("--framing %s: want one of [auto octet lf none]", p.Framing)
	}
	if p.decoder, err = socket.NewDecoder(&p.Config); err != nil {
		return usagef("--timezone %s: want an IANA name, such as Europe/Berlin", p.Timezone)
	}
	return nil
}

// run prints the messages of in, those of a live input as they come.
func (p *parsing) run(in io.Reader) error {
	if p.framer == nil {
		return p.whole(in)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		for data := buf[:n]; len(data) > 0; {
			frame, cut, used := p.framer.Next(data)
			data = data[used:]
			if frame != nil {
				p.message(frame, cut)
			}
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("read standard input: %w", err)
		}
		if err == io.EOF || p.framer.Bad() {
			break
		}
		if err := p.out.Flush(); err != nil {
			return fmt.Errorf("write standard output: %w", err)
		}
	}
	frame, lost := p.framer.End(true)
	if frame != nil {
		p.message(frame, false)
	}
	p.lost = lost || p.framer.Bad()
	return p.flush()
}

// whole takes all of in as one message.
func (p *parsing) whole(in io.Reader) error {
	frame := make([]byte, int(p.MaxMessage))
	n, err := io.ReadFull(in, frame)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("read standard input: %w", err)
	}
	cut := false
	rest := make([]byte, 64<<10)
	for err == nil { // line ends do not count
		var more int
		more, err = in.Read(rest)
		cut = cut || len(bytes.TrimRight(rest[:more], "\r\n\x00")) > 0
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read standard input: %w", err)
	}
	p.message(frame[:n], cut)
	return p.flush()
}

func (p *parsing) message(frame []byte, cut bool) {
	b := router.NewBatch(len(frame)*16+1<<20, 1)
	defer b.Discard()
	m := b.Add(&router.Origin{})
	if !p.decoder.Decode(m, b.Copy(frame), p.received().UnixNano(), nil, b) {
		return
	}
	if cut {
		p.cut++
	}
	p.line = append(router.AppendRecord(p.line[:0], m), '\n')
	p.out.Write(p.line) // its error stays until Flush
}

func (p *parsing) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// messageSizeFlag reads --max-message: a size, or a bare number of bytes.
func messageSizeFlag(value string) (config.Size, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		size, err := sizeFlag("max-message", value)
		if err != nil {
			return 0, err
		}
		n = int64(size)
	}
	if least, most := int64(16), int64(16<<20); n < least || n > most {
		return 0, usagef("--max-message %s: want 16B to 16MiB", value)
	}
	return config.Size(n), nil
}

// sizeFlag reads a size as the configuration writes it.
func sizeFlag(name, value string) (config.Size, error) {
	n, err := config.ParseSize(value)
	if err != nil {
		return 0, usagef("--%s %s: %v", name, value, err)
	}
	return n, nil
}
