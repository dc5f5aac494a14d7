package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/deadletter"
)

// dlqPlace are the flags that say where the letters are.
type dlqPlace struct{ stateFlag }

func addDLQPlace(cmd *cobra.Command) dlqPlace { return dlqPlace{addStateFlag(cmd)} }

// none tells that there are no letters, unless err is another one. A state directory that does not exist is an error: a misspelt one
// would look like good news.
func (p dlqPlace) none(c *cobra.Command, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(*p.dir); err != nil {
		return fmt.Errorf("look for dead letters in the state directory: %w", err)
	}
	fmt.Fprintf(c.ErrOrStderr(), "no dead letters in %s: nothing was ever rejected there\n", *p.dir)
	return nil
}

// reader opens the store; the reader is nil when nothing was ever kept, which it tells on standard error.
func (p dlqPlace) reader(c *cobra.Command) (*deadletter.Reader, error) {
	if err := p.find(c); err != nil {
		return nil, err
	}
	r, err := deadletter.OpenReader(*p.dir)
	if err != nil {
		return nil, p.none(c, err)
	}
	return r, nil
}

// editor is reader, to change the store.
func (p dlqPlace) editor(c *cobra.Command) (*deadletter.Editor, error) {
	if err := p.find(c); err != nil {
		return nil, err
	}
	e, err := deadletter.OpenEditor(*p.dir)
	if err != nil {
		return nil, p.none(c, err)
	}
	return e, nil
}

// look opens the store for the letters that are meant. The reader is nil when nothing was ever kept, and they are none in particular.
func (p dlqPlace) look(c *cobra.Command, which deadletter.Selection) (*deadletter.Reader, error) {
	reader, err := p.reader(c)
	if err != nil {
		return nil, err
	}
	if err := p.exist(c, reader, which); err != nil {
		if reader != nil {
			reader.Close()
		}
		return nil, err
	}
	return reader, nil
}

// exist tells which of the numbers have no letter, and a destination that nobody knows: neither the letters nor, where it was read,
// the configuration. reader is nil where nothing was ever kept.
func (p dlqPlace) exist(c *cobra.Command, reader *deadletter.Reader, which deadletter.Selection) error {
	var missing []string
	for _, n := range which.Numbers {
		found := []int64(nil)
		if reader != nil {
			var err error
			if found, err = reader.Oldest(deadletter.Selection{Numbers: []int64{n}}, 1); err != nil {
				return err
			}
		}
		if len(found) == 0 {
			missing = append(missing, strconv.FormatInt(n, 10))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s (see weir dlq ls)", deadletter.ErrNone, strings.Join(missing, ", "))
	}
	if which.Destination == "" {
		return nil
	}
	if reader != nil {
		found, err := reader.Oldest(deadletter.Selection{Destination: which.Destination}, 1)
		if err != nil || len(found) > 0 {
			return err
		}
	}
	if s, doc := loadSettings(c); doc.Err() == nil && s.Destinations.Get(which.Destination) != nil {
		return nil
	}
	return fmt.Errorf("--destination %s: neither the configuration nor a dead letter has it", which.Destination)
}

// dlqSelection are the flags and arguments that say which letters are meant.
type dlqSelection struct {
	which        deadletter.Selection
	since, until string
}

func addDLQSelection(cmd *cobra.Command) *dlqSelection {
	s := &dlqSelection{}
	cmd.Flags().StringVar(&s.which.Destination, "destination", "", "only letters that this destination rejected (its `name`)")
	cmd.Flags().StringVar(&s.which.Route, "route", "", "only letters that a filter rejected on this route (its `name`)")
	cmd.Flags().StringVar(&s.which.Filter, "filter", "", "only letters that this filter rejected (its `name`)")
	cmd.Flags().StringVar(&s.which.Code, "code", "", "only letters whose `code` is this or begins so: 22P02, 22, SQLITE_CONSTRAINT, trap")
	cmd.Flags().StringVar(&s.since, "since", "", "only letters rejected since this `time`: 2h (so long ago), 7d, or 2026-11-30T10:00:00Z")
	cmd.Flags().StringVar(&s.until, "until", "", "only letters rejected before this `time`, said in the same way")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		s.which.Numbers = nil
		for _, arg := range args {
			n, err := letterNumber(arg)
			if err != nil {
				return err
			}
			s.which.Numbers = append(s.which.Numbers, n)
		}
		slices.Sort(s.which.Numbers)
		return nil
	}
	return s
}

func letterNumber(arg string) (int64, error) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || n < 1 {
		return 0, usagef("%s is no number of a dead letter (see weir dlq ls)", arg)
	}
	return n, nil
}

// selection is what was typed.
func (s *dlqSelection) selection(now time.Time) (deadletter.Selection, error) {
	for _, x := range []struct {
		flag, text string
		t          *time.Time
	}{{"since", s.since, &s.which.Since}, {"until", s.until, &s.which.Until}} {
		if x.text == "" {
			continue
		}
		var err error
		if *x.t, err = moment(x.text, now); err != nil {
			return s.which, usagef("--%s %s: %v", x.flag, x.text, err)
		}
	}
	if !s.which.Since.IsZero() && !s.which.Until.IsZero() && !s.which.Since.Before(s.which.Until) {
		return s.which, usagef("--since %s --until %s: nothing lies between", s.since, s.until)
	}
	return s.which, nil
}

// counted is "1 letter", "2 letters".
func counted(n int) string {
	if n == 1 {
		return "1 letter"
	}
	return fmt.Sprintf("%d letters", n)
}
