package file

import (
	"context"
	"fmt"
	"io"

	"github.com/weirlog/weir/router"
)

// A StdoutConfig is a destination `stdout: {}` of the configuration file.
type StdoutConfig struct {
	Stdout struct{} `yaml:"stdout"`
}

// A Stdout writes messages to a stream as record JSON, one a line. There is
// nothing to sync and nothing to take back: what a failed Write had written
// comes again.
type Stdout struct {
	W   io.Writer
	out lines
}

// Write writes msgs. It rejects nothing.
func (s *Stdout) Write(ctx context.Context, msgs []*router.Message, _ func([]router.Rejected) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.out.write(s.W, msgs); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// Close does nothing: the stream is not ours.
func (s *Stdout) Close() error { return nil }
