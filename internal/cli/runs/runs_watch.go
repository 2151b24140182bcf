package runs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/work/run"
)

// printedRun returns the parameter for the run, which cannot come from standard input.
func printedRun() contract.Param {
	p := runParam()
	p.Stdin = false
	return p
}

func runsWatch() *contract.Command {
	return &contract.Command{
		Path: "runs watch", Summary: "print what happens in a run as JSON lines, until it ends or asks",
		Class: contract.Printout, Danger: contract.Safe, Version: "1.0.0", Scopes: []string{},
		LooseConfig: true,
		Detail: "The lines are those of omniagent session events, with the run's own count in seq and the attempt. " +
			"The last one has status and exit_code.\n" +
			"A line is always the same, so --from continues where an earlier reader stopped. It ends with the exit " +
			"code of the run,\nwhich is 130 where the run was cancelled.",
		Params: []contract.Param{
			printedRun(), flags.Where(),
			{Name: "from", Kind: contract.Int, Default: "1", Min: 1, Max: 1 << 53, Help: "seq of the first line"},
			flags.PrintedForm("jsonl"),
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the run succeeded; any other status is that of omniagent run"},
			{Code: contract.GeneralError, When: "the run failed, cannot be read, or nobody reads this"},
			{Code: contract.ArgError, When: "wrong call"},
			{Code: contract.PreconditionFailed, When: "it waits for an answer, or no home"},
			{Code: contract.NotFound, When: "no such run, or its agent is not installed"},
			{Code: contract.PermissionDenied, When: "a tool was denied, or the agent is not allowed"},
			{Code: contract.AuthRequired, When: "not logged in"},
			{Code: contract.PaymentRequired, When: "the quota is used up"},
			{Code: contract.TimedOut, When: "it took too long, or fell silent"},
			{Code: contract.RateLimited, When: "the service asks for fewer calls"},
			{Code: contract.Unavailable, When: "the service does not answer, or nobody carries the run out"},
		},
		Examples: []contract.Example{
			{Description: "All of it", Command: "omniagent runs watch run-1a2b3c4d"},
			{Description: "The lines after 41", Command: "omniagent runs watch run-1a2b3c4d --from 42"},
		},
		Serve: serveWatch,
	}
}

func serveWatch(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	store, err := stores.Runs(c)
	if err != nil {
		return 0, err
	}
	ctx, ended, stop := contract.UntilSignal(ctx, signals)
	defer stop()
	r, err := watch(ctx, store, c.String("id"), int64(c.Int("from")), contract.Printed(c.Host.Stdout))
	if code, is := ended(); is {
		return code, nil
	}
	if err != nil {
		return unread(err), err
	}
	code := 0
	switch {
	case r.State == run.NeedsInput:
		code = contract.ExitFor(fault.Precondition)
	case r.Result != nil:
		code = contract.ExitOfFault(r.Result.Fault)
	}
	line, err := text.Line(map[string]any{"run_id": r.ID, "status": r.State, "exit_code": code})
	if err == nil {
		_, err = contract.Printed(c.Host.Stdout).Write(append(line, '\n'))
	}
	return cmp.Or(code, unread(err)), err
}

// unread returns the exit code for an error of reading or writing. It is not 0, which would mean that the run
// succeeded.
func unread(err error) int {
	if err == nil {
		return 0
	}
	return 1
}

// readable reports whether it is known where the records of an attempt begin in its session.
func readable(a run.Attempt) bool {
	return !a.Ended.IsZero() || a.Session != "" && (!a.Resumed || a.First > 0)
}

// watch prints the records of a run's conversations until it is over or waits for a person. seq numbers the records of
// all attempts in one sequence.
func watch(ctx context.Context, store run.Store, id string, from int64, out io.Writer) (run.Record, error) {
	var seq int64
	since := time.Now()
	for n := 0; ; {
		r, err := store.Load(ctx, id)
		if err != nil {
			return r, err
		}
		if n < len(r.Attempts) && readable(r.Attempts[n]) {
			if seq, r, err = watchAttempt(ctx, store, id, n, seq, from, out); err != nil || asking(r) {
				return r, err
			}
			n++
			continue
		}
		if n >= len(r.Attempts) && (r.State.Terminal() || r.WaitsForPerson()) {
			return r, nil
		}
		if err := store.CheckProgress(r, &since); err != nil {
			return r, err
		}
		if err := pause(ctx); err != nil {
			return r, err
		}
	}
}

// asking reports whether a run has an open question, whether or not its agent waits for the answer.
func asking(r run.Record) bool { return r.State == run.NeedsInput && len(r.Open()) > 0 }

const watchGap = 20 * time.Millisecond

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(watchGap):
		return nil
	}
}

// watchAttempt prints the records of one attempt until it ends or asks a person. It returns the number of the last
// record and the run's state at that time.
func watchAttempt(ctx context.Context, store run.Store, id string, n int, seq, from int64, out io.Writer) (int64,
	run.Record, error,
) {
	r, err := store.Load(ctx, id)
	if err != nil || r.Attempts[n].Session == "" {
		return seq, r, err
	}
	next := r.Attempts[n].First + 1
	var row, line []byte
	for {
		over, waits := !r.Attempts[n].Ended.IsZero(), asking(r)
		records, err := store.Sessions.Reader(r.Attempts[n].Session, next, false)
		if err != nil {
			return seq, r, err
		}
		for !over || next <= r.Attempts[n].Last {
			e, err := records.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				_ = records.Close()
				return seq, r, err
			}
			seq, next = seq+1, e.Number+1
			if seq < from {
				continue
			}
			if row, err = e.AppendRow(row[:0]); err != nil {
				return seq, r, err
			}
			line = renumbered(line[:0], row, seq, n+1)
			if _, err := out.Write(line); err != nil {
				_ = records.Close()
				return seq, r, err
			}
		}
		_ = records.Close()
		if over || waits {
			return seq, r, nil
		}
		if err := pause(ctx); err != nil {
			return seq, r, err
		}
		if r, err = store.Load(ctx, id); err != nil {
			return seq, r, err
		}
	}
}

// renumbered replaces a row's number in its session by that in the run, and adds the attempt.
func renumbered(dst, row []byte, seq int64, attempt int) []byte {
	_, rest, _ := bytes.Cut(row, []byte(","))
	dst = strconv.AppendInt(append(dst, `{"seq":`...), seq, 10)
	dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(attempt), 10)
	return append(append(dst, ','), rest...)
}

func runsLogs() *contract.Command {
	return &contract.Command{
		Path: "runs logs", Summary: "print what an agent wrote in a run", Class: contract.Printout,
		Danger:  contract.Safe,
		Version: "1.0.0", Scopes: []string{}, LooseConfig: true,
		Detail: "With --raw it is every byte of the stream, as the agent wrote it. Otherwise it is the conversation, " +
			"for people.",
		Params: []contract.Param{
			printedRun(), flags.Where(),
			{Name: "raw", Kind: contract.Enum, Enum: []string{"stdout", "stderr"}, Help: "the bytes of this stream"},
			flags.PrintedForm("plain"),
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is printed"},
			{Code: contract.GeneralError, When: "it cannot be read or written"},
			{Code: contract.ArgError, When: "wrong call"},
			{Code: contract.PreconditionFailed, When: "no home"},
			{Code: contract.NotFound, When: "no such run"},
		},
		Examples: []contract.Example{
			{Description: "The conversation", Command: "omniagent runs logs run-1a2b3c4d"},
			{Description: "Every byte of its output", Command: "omniagent runs logs run-1a2b3c4d --raw stdout"},
		},
		Serve: serveLogs,
	}
}

func serveLogs(ctx context.Context, c *contract.Call, _ <-chan os.Signal) (int, error) {
	store, err := stores.Runs(c)
	if err != nil {
		return 0, err
	}
	r, err := store.Load(ctx, c.String("id"))
	if err != nil {
		return 0, err
	}
	if name := c.String("raw"); name != "" {
		f, err := os.Open(filepath.Join(store.Path(r.ID), name))
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		if err != nil {
			return 0, fault.New(fault.PermissionDenied, "%s of %s cannot be read", name, r.ID).Because(err)
		}
		defer f.Close()
		_, err = io.Copy(contract.Printed(c.Host.Stdout), f)
		return 0, err
	}
	shown := map[string]bool{}
	for _, a := range r.Attempts {
		if a.Session == "" || shown[a.Session] {
			continue
		}
		shown[a.Session] = true
		if err := store.Sessions.Export(a.Session, "markdown", contract.Printed(c.Host.Stdout)); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
