package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
)

type execData struct{}

// maxLine limits a line of the batch, in bytes.
const maxLine = 16 << 20

func exec() *contract.Command {
	return &contract.Command{
		Path: "exec", Summary: "run many commands from JSON lines, in one process", Class: contract.Envelope,
		Danger: contract.Safe, Dispatches: true, Version: "1.0.0",
		Detail: "Each line is an object: _cmd names the command as in the manifest, _opts holds flags, all else are " +
			"its arguments. Each line gets\n" +
			"one envelope line with meta._cmd and meta._line, as soon as it is done. The batch stops at the first " +
			"failure unless " +
			"--ignore-errors is given. A\n" +
			"line may change what its own command may change. It needs its own confirmation, and has the time limit " +
			"of its\ncommand; --timeout limits all lines together.",
		Scopes: []string{}, Output: contract.TypeOf[execData](), Stdin: &contract.Stdin{
			Format:   "jsonl",
			Required: true,
			Lines:    true,
		},
		Params: []contract.Param{
			{Name: "ignore-errors", Kind: contract.Bool, Help: "go on after a line that failed"},
			{Name: "dry-run", Kind: contract.Bool, Help: "give --dry-run to every line that can take it"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "every line succeeded"},
			{Code: contract.GeneralError, When: "a line failed; its own envelope says why", Changed: contract.None},
			{Code: contract.PreconditionFailed, When: "standard input is empty or a terminal"},
			{Code: contract.NotFound, When: "the input file does not exist"},
			{
				Code: contract.TimedOut, When: "the time limit passed; finished lines have their envelopes",
				Changed: contract.Some,
			},
		},
		Examples: []contract.Example{
			{
				Description: "Two calls at the price of one start",
				Command:     `printf '{"_cmd":"version"}\n{"_cmd":"usage"}\n' | omniagent exec`,
			},
			{
				Description: "From a file, going on after failures",
				Command:     "omniagent exec --input-file calls.jsonl --ignore-errors",
			},
		},
		Run: runExec,
	}
}

func runExec(ctx context.Context, c *contract.Call) (contract.Result, error) {
	input, err := c.Input(ctx)
	if err != nil {
		return contract.Result{}, err
	}
	defer func() { _ = input.Close() }()
	var forward []string
	if c.Bool("dry-run") {
		forward = append(forward, "--dry-run")
	}
	in := lines.NewReader(input, maxLine)
	ran, failed, parsed, number, stopped := 0, 0, 0, 0, ""
	for ctx.Err() == nil && in.Next() && !in.Long {
		number++
		line := bytes.TrimSpace(in.Text)
		if len(line) == 0 {
			continue
		}
		if c.ReaderGone() {
			return contract.Result{Lines: true}, fault.New(fault.BatchFailed,
				"nobody reads the answers any more, so line %d and what follows were not carried out", number)
		}
		ran++
		status := c.Dispatch(ctx, line, number, forward)
		if status != 2 {
			parsed++
		}
		if status != 0 {
			failed++
		}
		if status != 0 && !c.Bool("ignore-errors") {
			stopped = fmt.Sprintf("; stopped at line %d", number)
			break
		}
	}
	if in.Long {
		return contract.Result{Lines: ran > 0}, fault.New(fault.FieldTooLarge, "line %d is longer than %d bytes",
			number+1, maxLine).Hint("give large values by file")
	}
	if err := in.Err(); err != nil {
		var f *fault.Fault
		if errors.As(err, &f) {
			return contract.Result{Lines: ran > 0}, f
		}
		return contract.Result{Lines: ran > 0}, fault.New(fault.Internal, "the input cannot be read").Because(err)
	}
	switch {
	case ran == 0 && ctx.Err() == nil:
		return contract.Result{}, fault.New(fault.StdinRequired, "there is no line to carry out").
			FixBy("pipe the lines in, or give --input-file", "").
			Hint("give a JSON object with _cmd on each line, or --input-file FILE")
	case failed == 0:
		return contract.Result{Lines: true}, nil
	case parsed == 0 && failed == ran:
		return contract.Result{Lines: true}, fault.New(fault.DispatchParse, "no line could be carried out%s", stopped).
			Hint("the envelope of each line says why; --ignore-errors goes on after a failure")
	}
	return contract.Result{Lines: true}, fault.New(fault.BatchFailed, "%d of %d lines failed%s", failed, ran, stopped).
		Hint("the envelope of each line says why; --ignore-errors goes on after a failure")
}
