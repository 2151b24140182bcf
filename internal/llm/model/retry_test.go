package model_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"omniagent/internal/llm/model"
)

// attempt is what a client does when it is asked once.
type attempt struct {
	hears  []model.Kind
	err    error
	before func() // called before it ends
}

// scripted is a client that does one attempt after another, and succeeds when there are no more.
type scripted struct {
	attempts []attempt
	at       []time.Time
	closed   bool
}

func (s *scripted) next() attempt {
	s.at = append(s.at, time.Now())
	if len(s.at) > len(s.attempts) {
		return attempt{}
	}
	return s.attempts[len(s.at)-1]
}

func (s *scripted) Ask(_ context.Context, _ model.Request, hear func(model.Piece)) (*model.Answer, error) {
	a := s.next()
	for _, k := range a.hears {
		hear(model.Piece{Kind: k, Text: "x"})
	}
	if a.before != nil {
		a.before()
	}
	if a.err != nil {
		return nil, a.err
	}
	return &model.Answer{ID: "whole"}, nil
}

func (s *scripted) Count(context.Context, model.Request) (int64, bool, error) {
	return 7, true, s.next().err
}

func (s *scripted) Profile() model.Profile { return model.Profile{Model: "m"} }

func (s *scripted) Close() error { s.closed = true; return nil }

func fails(all ...model.Trouble) (out []attempt) {
	for _, t := range all {
		out = append(out, attempt{err: &model.Error{Trouble: t, Message: string(t)}})
	}
	return out
}

func TestRetrying(t *testing.T) {
	const s = time.Second
	exact := model.RetryOptions{Jitter: -1}
	gemini := model.RetryOptions{Tries: 5, First: s / 2, Jitter: -1}
	later := func(d time.Duration) attempt {
		return attempt{err: &model.Error{Trouble: model.Limited, After: d}}
	}
	thought := attempt{hears: []model.Kind{model.Thinking}, err: &model.Error{Trouble: model.Broken, Emitted: true}}
	spoke := attempt{
		hears: []model.Kind{model.Thinking, model.Text},
		err:   &model.Error{Trouble: model.Overloaded, Emitted: true},
	}
	for name, c := range map[string]struct {
		o        model.RetryOptions
		attempts []attempt
		waits    []time.Duration
		ok       bool
	}{
		"whole":   {exact, nil, nil, true},
		"once":    {exact, fails(model.Limited), []time.Duration{s}, true},
		"doubles": {exact, fails(model.Limited, model.Overloaded), []time.Duration{s, 2 * s}, true},
		"spent, without a wait": {
			exact, fails(model.Limited, model.Broken, model.Offline),
			[]time.Duration{s, 2 * s},
			false,
		},
		"gemini": {gemini, fails(model.Limited, model.Limited, model.Limited, model.Limited,
			model.Limited), []time.Duration{s / 2, s, 2 * s, 4 * s}, false},
		"most": {
			model.RetryOptions{Tries: 5, First: 20 * s, Max: 30 * s, Jitter: -1},
			fails(model.Broken, model.Broken, model.Broken),
			[]time.Duration{20 * s, 30 * s, 30 * s},
			true,
		},
		"first beyond the most": {
			model.RetryOptions{First: 90 * s, Jitter: -1},
			fails(model.Broken),
			[]time.Duration{60 * s},
			true,
		},
		"as the API says": {
			exact,
			[]attempt{later(7 * s), later(100 * s)},
			[]time.Duration{7 * s, 100 * s},
			true,
		},
		"it asks for an impossible wait": {
			exact, append([]attempt{later(7 * s)}, fails(model.Broken)...),
			[]time.Duration{7 * s, 2 * s},
			true,
		},
		"too long": {exact, []attempt{later(121 * s)}, nil, false},
		"long, and wanted": {
			model.RetryOptions{Limit: time.Hour, Jitter: -1},
			[]attempt{later(121 * s)},
			[]time.Duration{121 * s},
			true,
		},
		"cut once":             {exact, fails(model.Cut), []time.Duration{s}, true},
		"cut twice":            {exact, fails(model.Cut, model.Cut), []time.Duration{s}, false},
		"cut, then stalled":    {exact, fails(model.Cut, model.Stalled), []time.Duration{s}, false},
		"cut between":          {exact, fails(model.Overloaded, model.Stalled), []time.Duration{s, 2 * s}, true},
		"thinking was heard":   {exact, []attempt{thought}, []time.Duration{s}, true},
		"text was heard":       {exact, []attempt{spoke}, nil, false},
		"text was heard later": {exact, []attempt{thought, spoke}, []time.Duration{s}, false},
		"not logged in":        {exact, fails(model.NoLogin), nil, false},
		"quota":                {exact, fails(model.Quota), nil, false},
		"rejected":             {exact, fails(model.Rejected), nil, false},
		"full":                 {exact, fails(model.Overflow), nil, false},
		"garbage":              {exact, fails(model.Garbage), nil, false},
		"another's error":      {exact, []attempt{{err: errors.New("other")}}, nil, false},
		"one try":              {model.RetryOptions{Tries: 1}, fails(model.Limited), nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &scripted{attempts: c.attempts}
			var told []model.Retry
			r := model.Retrying(client, c.o, func(r model.Retry) { told = append(told, r) })
			begin := time.Now()
			a, err := r.Ask(t.Context(), model.Request{}, nil)
			var waits []time.Duration
			for i := 1; i < len(client.at); i++ {
				waits = append(waits, client.at[i].Sub(client.at[i-1]))
			}
			if !slices.Equal(waits, c.waits) || (err == nil) != c.ok || (a != nil) != c.ok || len(told) != len(waits) {
				t.Errorf("%s: %v, told %v, %v", name, waits, told, err)
			}
			if end := client.at[len(client.at)-1]; time.Since(end) != 0 || client.at[0] != begin {
				t.Errorf("%s: a wait of %s at the end", name, time.Since(end))
			}
			for i, r := range told {
				of := max(3, c.o.Tries)
				if model.Ended(r.Error) { // it is asked once more after that
					of = min(of, i+2)
				}
				if r.Attempt != i+1 || r.Of != of || r.After != c.waits[i] || r.Error != c.attempts[i].err {
					t.Errorf("%s: %+v", name, r)
				}
			}
			if err != nil && err != c.attempts[len(client.at)-1].err {
				t.Errorf("%s: not the last error but %v", name, err)
			}
		})
	}
}

func TestRetryingVaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 200 {
			client := &scripted{attempts: fails(model.Broken)}
			_, _ = model.Retrying(client, model.RetryOptions{}, nil).Ask(t.Context(), model.Request{}, nil)
			wait := client.at[1].Sub(client.at[0])
			if wait < 900*time.Millisecond || wait > 1100*time.Millisecond {
				t.Fatal(wait)
			}
			seen[wait.Round(20*time.Millisecond)] = true
		}
		if len(seen) < 8 {
			t.Error(seen)
		}
	})
}

func TestRetryingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		client := &scripted{attempts: []attempt{{
			hears: []model.Kind{model.Thinking},
			err:   &model.Error{Trouble: model.Broken, Emitted: true, Partial: []model.Block{{Kind: model.Thinking}}},
		}}}
		begin := time.Now()
		time.AfterFunc(300*time.Millisecond, func() { cancel(why) })
		_, err := model.Retrying(client, model.RetryOptions{}, nil).Ask(ctx, model.Request{}, nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Trouble != model.Stopped || !errors.Is(err, why) || !e.Emitted ||
			len(e.Partial) != 1 || time.Since(begin) != 300*time.Millisecond {
			t.Errorf("%#v after %s", err, time.Since(begin))
		}
		// An error of a client that was stopped does not justify a wait.
		ctx, cancel = context.WithCancelCause(t.Context())
		client = &scripted{attempts: []attempt{{
			err:    &model.Error{Trouble: model.Broken},
			before: func() { cancel(why) },
		}}}
		begin = time.Now()
		told := func(r model.Retry) { t.Error("a wait was announced: ", r) }
		if _, err := model.Retrying(client, model.RetryOptions{}, told).Ask(ctx, model.Request{},
			nil); err != client.attempts[0].err || len(client.at) != 1 || time.Since(begin) != 0 {
			t.Error(err, client.at)
		}
	})
}

func TestRetryingPassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &scripted{attempts: append(fails(model.Limited),
			attempt{hears: []model.Kind{model.Thinking, model.Text}})}
		r := model.Retrying(client, model.RetryOptions{}, nil)
		if n, exact, err := r.Count(t.Context(), model.Request{}); n != 7 || !exact || err != nil ||
			len(client.at) != 2 {
			t.Error(n, exact, err, client.at)
		}
		client.at = client.at[:1]
		var heard []model.Piece
		if _, err := r.Ask(t.Context(), model.Request{},
			func(p model.Piece) { heard = append(heard, p) }); err != nil || len(heard) != 2 {
			t.Error(heard, err)
		}
		if err := r.(interface{ Close() error }).Close(); err != nil || !client.closed || r.Profile().Model != "m" {
			t.Error(err, client.closed)
		}
	})
}
