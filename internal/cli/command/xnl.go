package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/xnl"
	"omniagent/internal/native/xnlcall"
)

// xnlParsed has a list of nodes, or one node with --single or --unique.
type xnlParsed struct {
	Nodes    []any         `json:"nodes,omitempty" doc:"without --single and --unique"`
	Node     any           `json:"node,omitempty" doc:"with --single or --unique"`
	Warnings []xnl.Warning `json:"warnings"`
}

type xnlFormatted struct {
	Text     contract.Exact `json:"text"`
	Warnings []xnl.Warning  `json:"warnings"`
}

// PlainText returns the XNL alone.
func (d xnlFormatted) PlainText() string { return string(d.Text) }

type xnlChecked struct {
	Valid    bool          `json:"valid"`
	Nodes    int           `json:"nodes" doc:"at the top"`
	Warnings []xnl.Warning `json:"warnings"`
}

func xnlParse() *contract.Command {
	return xnlCommand(contract.Command{
		Path: "xnl parse", Summary: "read XNL and print its nodes", Output: contract.TypeOf[xnlParsed](),
		Params: []contract.Param{
			{Name: "single", Kind: contract.Bool, Help: "the text has one node"},
			{Name: "unique", Kind: contract.Text, Help: "the nodes are the unique children of a root with this name"},
		},
		Examples: []contract.Example{{
			Description: "A node",
			Command:     `printf '<a x=1 [2 <b>]>' | omniagent xnl parse`,
		}},
		Rules: []contract.Rule{{If: "single", Not: []string{"unique"}}},
	}, func(c *contract.Call, text string) (any, error) {
		root := c.String("unique")
		if root == "" && !c.Bool("single") {
			nodes, warnings, err := xnl.Parse(text)
			if err != nil {
				return nil, err
			}
			plain, err := asData(nodes)
			list, _ := plain.([]any)
			return xnlParsed{Nodes: list, Warnings: warnings}, err
		}
		parse := xnl.ParseSingle
		if root != "" {
			parse = func(text string) (*xnl.Node, []xnl.Warning, error) { return xnl.ParseUnique(root, text) }
		}
		node, warnings, err := parse(text)
		if err != nil {
			return nil, err
		}
		plain, err := asData(node)
		return xnlParsed{Node: plain, Warnings: warnings}, err
	})
}

func xnlFormat() *contract.Command {
	return xnlCommand(contract.Command{
		Path: "xnl format", Summary: "print XNL in one form", Output: contract.TypeOf[xnlFormatted](),
		Params: []contract.Param{
			{Name: "indent", Kind: contract.Int, Max: 16, Default: "2", Help: "blanks a level; 0: all on one line"},
		},
		Examples: []contract.Example{{
			Description: "One member or item a line",
			Command:     `printf '<a{x=1}>' | omniagent xnl format --output plain`,
		}},
	}, func(c *contract.Call, text string) (any, error) {
		nodes, warnings, err := xnl.Parse(text)
		if err != nil {
			return nil, err
		}
		indent := strings.Repeat(" ", int(c.Int("indent")))
		return xnlFormatted{Text: contract.Exact(xnl.Print(nodes, indent) + "\n"), Warnings: warnings}, nil
	})
}

func xnlCheck() *contract.Command {
	return xnlCommand(contract.Command{
		Path: "xnl check", Summary: "check that a text is XNL", Output: contract.TypeOf[xnlChecked](),
		Examples: []contract.Example{{Description: "A node", Command: `printf '<a x=1>' | omniagent xnl check`}},
	}, func(_ *contract.Call, text string) (any, error) {
		nodes, warnings, err := xnl.Parse(text)
		return xnlChecked{Valid: err == nil, Nodes: len(nodes), Warnings: warnings}, err
	})
}

// xnlPrompted is the result of xnl prompt: the documents for the model.
type xnlPrompted struct {
	Documents []xnlcall.Document `json:"documents"`
}

// PlainText returns the documents in their order.
func (d xnlPrompted) PlainText() string {
	parts := make([]string, len(d.Documents))
	for i, one := range d.Documents {
		parts[i] = one.Text
	}
	return strings.Join(parts, "\n\n") + "\n"
}

func (p Parts) xnlPrompt() *contract.Command {
	return &contract.Command{
		Path: "xnl prompt", Summary: "print what a model gets that calls tools in XNL", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0", NoConfig: true, Scopes: []string{},
		Output: contract.TypeOf[xnlPrompted](),
		Exits:  []contract.Exit{{Code: contract.Success, When: "it is printed"}},
		Examples: []contract.Example{{
			Description: "As one text", Command: "omniagent xnl prompt --output plain",
		}},
		Run: func(context.Context, *contract.Call) (contract.Result, error) {
			return contract.Result{Data: xnlPrompted{append([]xnlcall.Document{
				{Name: "SystemPrompt.md", Text: xnlcall.SystemPrompt()},
			}, xnlcall.Documents(p.Tools.Routed())...)}}, nil
		},
	}
}

// xnlCommand adds the declarations shared by the commands that read XNL from standard input, and reads it.
func xnlCommand(cmd contract.Command, run func(c *contract.Call, text string) (any, error)) *contract.Command {
	cmd.Class, cmd.Danger, cmd.Version, cmd.Scopes = contract.Envelope, contract.Safe, "1.0.0", []string{}
	cmd.Stdin = &contract.Stdin{Format: "text", Required: true, Empty: true}
	cmd.Exits = []contract.Exit{
		{Code: contract.Success, When: "the text is XNL"},
		{Code: contract.ArgError, When: "it is not; the error names line and column"},
		{Code: contract.PreconditionFailed, When: "standard input is closed or a terminal"},
		{Code: contract.NotFound, When: "the input file does not exist"},
	}
	cmd.Run = func(ctx context.Context, c *contract.Call) (contract.Result, error) {
		input, err := c.Input(ctx)
		if err != nil {
			return contract.Result{}, err
		}
		defer func() { _ = input.Close() }()
		text, err := io.ReadAll(io.LimitReader(input, flags.LongestMessage+1))
		switch {
		case err != nil:
			return contract.Result{}, fault.New(fault.StdinRequired, "the input cannot be read").Because(err)
		case len(text) > flags.LongestMessage:
			return contract.Result{}, fault.New(fault.ArgError, "the input has more than %d MiB",
				flags.LongestMessage>>20)
		}
		data, err := run(c, string(text))
		if err != nil {
			return contract.Result{}, xnlFault(err)
		}
		return contract.Result{Data: data}, nil
	}
	return &cmd
}

// xnlFault adds the position of an error, for programs.
func xnlFault(err error) error {
	var e *xnl.Error
	if !errors.As(err, &e) {
		return err
	}
	return fault.New(fault.InvalidXNL, "line %d, column %d: %s", e.Line, e.Column, e.Reason).With("context",
		map[string]any{
			"code": e.Code, "message": e.Error(), "line": e.Line, "column": e.Column, "position": e.Position,
		})
}

// asData returns nodes as maps and lists, with texts that keep their carriage returns.
func asData(v any) (data any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&data)
	return exact(data), err
}

// exact makes every text of a value contract.Exact, so that JSON keeps its carriage returns.
func exact(v any) any {
	switch v := v.(type) {
	case string:
		return contract.Exact(v)
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = exact(v[key])
		}
	}
	return v
}
