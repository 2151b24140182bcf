package sessions

import (
	"context"
	"errors"
	"io"
	"os"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
)

// sessionEvents declares the command that prints the records of a conversation for programs.
func sessionEvents() *contract.Command {
	return &contract.Command{
		Path: "session events", Summary: "print the records of one conversation, one line of JSON each",
		Class: contract.Printout, Danger: contract.Safe,
		Version: "1.0.0", Scopes: []string{}, LooseConfig: true,
		Detail: "Each line has seq, time, turn and kind; seq counts from 1 without gaps, and a line of one record is " +
			"always the same bytes. A place of the file that " +
			"is damaged is a line of the kind damaged, with its offset and size. docs/sessions.md has the kinds.",
		Params: []contract.Param{
			{Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Help: "the session"},
			{Name: "from", Kind: contract.Int, Default: "1", Help: "seq of the first record to print"},
			flags.Where(), flags.PrintedForm("jsonl"),
			{
				Name: "follow", Short: "f", Kind: contract.Bool,
				Help: "wait for further records while a process has the session open",
			},
		},
		Exits: []contract.Exit{
			{
				Code: contract.Success,
				When: "the records are printed; with --follow, no process has the session open any more",
			},
			{Code: contract.GeneralError, When: "the session or standard output cannot be used"},
			{Code: contract.ArgError, When: "wrong call"},
			{Code: contract.PreconditionFailed, When: "no home"},
			{Code: contract.NotFound, When: "no such session"},
		},
		Examples: []contract.Example{
			{Description: "All of them", Command: "omniagent session events sess-1a2b3c4d"},
			{
				Description: "The records after 41",
				Command:     "omniagent session events sess-1a2b3c4d --from 42 --follow",
			},
		},
		Serve: serveEvents,
	}
}

func serveEvents(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	if c.Int("from") < 1 {
		return 0, fault.New(fault.ArgError, "--from must be 1 or more").Hint("the first record has seq 1")
	}
	store, err := stores.Sessions(c)
	if err != nil {
		return 0, err
	}
	records, err := store.Reader(c.String("id"), int64(c.Int("from")), c.Bool("follow"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = records.Close() }()
	ctx, ended, stop := contract.UntilSignal(ctx, signals)
	defer stop()
	var row []byte
	for {
		e, err := records.Next(ctx)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if code, is := ended(); is {
			return code, nil
		}
		if err != nil {
			return 0, err
		}
		if row, err = e.AppendRow(row[:0]); err != nil {
			return 0, err
		}
		if _, err := contract.Printed(c.Host.Stdout).Write(row); err != nil { // at once, for readers that follow
			return 0, err
		}
	}
}
