package model

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// RetryOptions control retries. Zero values mean the defaults, which the comments name.
type RetryOptions struct {
	Tries  int           // in all; 3
	First  time.Duration // the wait before the second try, which doubles from there; 1s
	Max    time.Duration // longest wait that we choose; 1m
	Jitter float64       // how much such a wait varies in each direction, as a fraction; 0.1, or none if negative
	Limit  time.Duration // if the API asks for a longer wait, return the error instead; 2m
}

// Retry is a wait before a retry.
type Retry struct {
	Attempt int // the failed attempt, counted from 1
	Of      int
	After   time.Duration
	Error   *Error
}

// Retrying returns a client that retries if that may help. It never retries after text was heard, because a text must
// not be heard twice. Thinking may be repeated. After a connection broke or fell silent, it retries only once. told is
// called before each wait; it may be nil.
func Retrying(c Client, o RetryOptions, told func(Retry)) Client {
	o.Tries = cmp.Or(o.Tries, 3)
	o.First, o.Max = cmp.Or(o.First, time.Second), cmp.Or(o.Max, time.Minute)
	o.Jitter, o.Limit = cmp.Or(o.Jitter, 0.1), cmp.Or(o.Limit, 2*time.Minute)
	if told == nil {
		told = func(Retry) {}
	}
	return &retrying{Client: c, o: o, notify: told}
}

type retrying struct {
	Client

	o      RetryOptions
	notify func(Retry)
}

func (r *retrying) Ask(ctx context.Context, q Request, hear func(Piece)) (*Answer, error) {
	text := false
	listen := func(p Piece) {
		text = text || p.Kind == Text
		if hear != nil {
			hear(p)
		}
	}
	var answer *Answer
	err := r.again(ctx, &text, func() (err error) {
		answer, err = r.Client.Ask(ctx, q, listen)
		return err
	})
	return answer, err
}

func (r *retrying) Count(ctx context.Context, q Request) (tokens int64, exact bool, err error) {
	err = r.again(ctx, new(bool), func() (err error) {
		tokens, exact, err = r.Client.Count(ctx, q)
		return err
	})
	return tokens, exact, err
}

// Close closes the underlying client, if it can be closed.
func (r *retrying) Close() error { return Close(r.Client) }

// Close closes a client, if it can be closed.
func Close(c Client) error {
	if closer, ok := c.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// again calls once, and repeats it as long as that makes sense.
func (r *retrying) again(ctx context.Context, text *bool, once func() error) error {
	wait, breaks := r.o.First, 0
	for attempt := 1; ; attempt++ {
		err := once()
		e, is := errors.AsType[*Error](err)
		if !is || !e.Again() || *text || attempt >= r.o.Tries || ctx.Err() != nil {
			return err
		}
		tries := r.o.Tries
		if Ended(e) {
			if breaks++; breaks > 1 {
				return err
			}
			tries = min(tries, attempt+1)
		}
		after := r.after(wait, e)
		if after > r.o.Limit {
			return err
		}
		r.notify(Retry{Attempt: attempt, Of: tries, After: after, Error: e})
		if !pause(ctx, after) {
			return &Error{
				Trouble: Stopped, Message: "stopped while waiting to ask again: " + e.Message, Emitted: e.Emitted,
				Partial: e.Partial, Usage: e.Usage, Cause: context.Cause(ctx),
			}
		}
		wait = min(2*wait, r.o.Max)
	}
}

// after returns the wait, as requested by the API if it names one.
func (r *retrying) after(wait time.Duration, e *Error) time.Duration {
	if e.After > 0 {
		return e.After
	}
	wait = min(wait, r.o.Max)
	if r.o.Jitter > 0 {
		wait += time.Duration(float64(wait) * r.o.Jitter * (2*rand.Float64() - 1))
	}
	return wait
}

// pause waits, and reports whether the whole time passed.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
