package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// What a terminal is told (ECMA-48, and xterm's private modes).
const (
	screenBegin = "\x1b[?25l\x1b[?7l\x1b[2J" // no cursor, lines that are too long end at the edge, nothing on it
	screenHome  = "\x1b[H"
	screenLine  = "\x1b[K\n" // what is left of the last drawing behind the end of the line goes
	screenRest  = "\x1b[J"   // and below the last line
	screenEnd   = "\x1b[?7h\x1b[?25h"
)

// watch shows an answer each interval, until ctx ends or a signal comes. A weir that does not answer may come back.
func (w *statusShow) watch(ctx context.Context, every time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if w.terminal && !w.json {
		io.WriteString(w.out, screenBegin)
		defer io.WriteString(w.out, screenEnd)
	}
	again := time.NewTicker(every)
	defer again.Stop()
	var silent time.Time // since when nobody answers
	for {
		s, err := w.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && w.json:
			var line []byte
			if line, err = json.Marshal(s); err == nil {
				_, err = fmt.Fprintf(w.out, "%s\n", line)
			}
		case err == nil:
			silent = time.Time{}
			err = w.draw(drawStatus(s, w.at.Address(), w.colors()))
		default:
			if silent.IsZero() {
				silent = time.Now()
			}
			text := fmt.Sprintf("no answer since %s, trying again every %v: %s\n", silent.Format(time.TimeOnly), every, printable(err.Error()))
			if err = nil; w.json { // a line that is no document would break whoever reads them
				break
			}
			err = w.draw(text)
		}
		if err != nil {
			return fmt.Errorf("write the status: %w", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// draw replaces what is on the terminal in one write, without clearing it first: nothing flickers. Elsewhere one text
// follows the other.
func (w *statusShow) draw(text string) error {
	if !w.terminal {
		_, err := io.WriteString(w.out, text+"\n")
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if _, height := terminalSize(w.out); height > 1 && len(lines) > height-1 {
		left := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… %d more lines: in a higher window, or without --watch", left))
	}
	_, err := io.WriteString(w.out, screenHome+strings.Join(lines, screenLine)+screenLine+screenRest)
	return err
}
