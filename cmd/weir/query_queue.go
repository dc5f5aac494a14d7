package main

import (
	"context"
	"io"
)

// A queue stands between a database and whoever reads what comes out: when that is a person before a full screen, the
// transaction does not wait for them. It takes some megabytes, then it waits, for no longer than ctx.
type queue struct {
	ctx    context.Context
	stop   context.CancelCauseFunc // of ctx, when nobody takes what is written
	pieces chan []byte
	piece  []byte
	done   chan error
}

const (
	queuePiece  = 64 << 10
	queuePieces = 256
)

// newQueue writes to w what it is given, until close. Its ctx ends when w takes nothing any more.
func newQueue(ctx context.Context, w io.Writer) *queue {
	q := &queue{pieces: make(chan []byte, queuePieces), done: make(chan error, 1)}
	q.ctx, q.stop = context.WithCancelCause(ctx)
	go func() {
		var failed error
		for piece := range q.pieces {
			if failed != nil {
				continue
			}
			if _, failed = w.Write(piece); failed != nil {
				q.stop(failed)
			}
		}
		q.done <- failed
	}()
	return q
}

// Write fails with the cause of ctx's end.
func (q *queue) Write(p []byte) (int, error) {
	q.piece = append(q.piece, p...)
	if len(q.piece) < queuePiece {
		return len(p), nil
	}
	return len(p), q.pass()
}

func (q *queue) pass() error {
	select {
	case q.pieces <- q.piece:
		q.piece = nil
		return nil
	case <-q.ctx.Done():
		return context.Cause(q.ctx)
	}
}

// close waits until all that was taken is written, or until ctx ends.
func (q *queue) close(ctx context.Context) error {
	defer q.stop(nil)
	if len(q.piece) > 0 {
		select {
		case q.pieces <- q.piece:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	close(q.pieces)
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
