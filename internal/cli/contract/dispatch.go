package contract

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/literal"
)

// Dispatch carries out one line of a batch in this process: a JSON object with the command in _cmd, flags in _opts and
// the payload in the other members. It writes one envelope line and returns the status. A failure, panic or hang
// affects only its line.
func (c *Call) Dispatch(ctx context.Context, line []byte, lineNumber int, forward []string) int {
	args, name, f := c.Program.dispatchArgs(line, forward)
	host := c.Host
	host.stray = nil
	host.Args, host.Dir = args, c.dir
	host.Stdin, host.StdinTerminal, host.StdinPiped = strings.NewReader(""), false, false
	host.Stdout, host.StdoutTerminal, host.Stderr = c.out, false, io.Discard
	host.line = object{{"_cmd", name}, {"_line", number(lineNumber)}}
	if f != nil {
		host.Args = nil
		call := &Call{
			mu: &sync.Mutex{}, Program: c.Program, Command: c.Program.rootCommand(), Host: host,
			words: []string{"exec"}, id: ident.Ordered(), started: c.started, dir: c.dir,
			values: map[string][]string{}, Config: c.Config, out: &out{w: c.out},
		}
		return call.finish(answer{fault: f, pure: true}, nil)
	}
	return c.Program.Run(ctx, host, nil)
}

// ReaderGone reports that nobody reads the answers any more: then a batch stops before its next line.
func (c *Call) ReaderGone() bool {
	broken, err := c.out.state()
	return broken || err != nil
}

// Write writes the answer of a line to the standard output of its batch.
func (o *out) Write(b []byte) (int, error) {
	if o.over() { // the batch ended before this line
		return 0, io.ErrClosedPipe
	}
	o.write(b)
	if broken, err := o.state(); broken {
		return 0, io.ErrClosedPipe
	} else if err != nil {
		return 0, err
	}
	return len(b), nil
}

// notInBatch reports whether a command cannot be a line of a batch.
func notInBatch(c *Command) bool { return !c.Class.enveloped() || c.Path == "exec" }

// dispatchArgs turns a line into the arguments of a call. name is the command that the line names, even with a fault.
func (p *Program) dispatchArgs(line []byte, forward []string) (args []string, name string, f *fault.Fault) {
	bad := func(hint, format string, a ...any) ([]string, string, *fault.Fault) {
		f := fault.New(fault.DispatchParse, format, a...)
		f.Phase = fault.Validation
		return nil, name, f.Hint("%s", hint)
	}
	const (
		plain       = `{"_cmd":"config.get","key":"output"}`
		withOptions = `{"_cmd":"config.get","key":"output","_opts":{"timeout":"5s"}}`
	)
	v, err := literal.ParseJSON5(line)
	if err != nil {
		return bad(plain, "the line is not JSON: %v", err)
	}
	cmd, _ := v.Member("_cmd")
	name = cmd.Value.Str
	command, known := p.Find(strings.ReplaceAll(name, ".", " "))
	switch {
	case name == p.Name:
		return bad(p.Name+" manifest", "%s is the program itself; _cmd names one of its commands", name)
	case v.Kind != literal.Object || name == "":
		return bad(plain, "the line has no _cmd")
	case !known || strings.Contains(name, " "):
		near := name // a command that exists, with a space in place of the dot
		if !known {
			near = nearestPath(strings.ReplaceAll(name, ".", " "), p.paths())
		}
		hint := p.Name + " manifest"
		if near != "" {
			hint = p.Name + " help " + strings.ReplaceAll(near, ".", " ")
		}
		_, _, f := bad(hint, "there is no command %q%s", name, didYouMean(strings.ReplaceAll(near, " ", ".")))
		return nil, name, f.FixBy("name a command that the manifest lists", p.Name+" manifest")
	case notInBatch(command):
		return bad(p.Name+" "+command.Path, "%s cannot be part of a batch", name)
	}
	args = strings.Fields(command.Path)
	payload := object{}
	for _, m := range v.Members {
		switch m.Key {
		case "_cmd":
		case "_opts":
			if m.Value.Kind != literal.Object {
				return bad(withOptions, "_opts is not an object")
			}
			for _, o := range m.Value.Members {
				arg, ok := option(o)
				if !ok {
					return bad(withOptions, "the option %s must be a string, a number, true or false", o.Key)
				}
				args = append(args, arg...)
			}
		default:
			if _, own := command.param(m.Key); !own && command.shares(m.Key) {
				return bad(withOptions, "%s is an option: it belongs in _opts", m.Key)
			}
			payload = append(payload, member{m.Key, literalTree(m.Value)})
		}
	}
	args = p.forwarded(command, args, forward)
	return append(args, payloadArgs(payload)...), name, nil
}

// option returns a member of _opts as the argument that a person would type. It returns false for a value that no flag
// takes.
func option(m literal.Member) ([]string, bool) {
	name := "--" + strings.ReplaceAll(m.Key, "_", "-")
	switch m.Value.Kind {
	case literal.Bool:
		// also for false, which overrides what is forwarded
		return []string{fmt.Sprintf("%s=%t", name, m.Value.Bool)}, true
	case literal.String:
		return []string{name + "=" + m.Value.Str}, true
	case literal.Number:
		return []string{name + "=" + m.Value.Num}, true
	}
	return nil, false
}

// forwarded adds the batch's own flags to a line that does not set them. What a line says in _opts overrides the batch,
// as the specification of the format requires.
func (p *Program) forwarded(command *Command, args, forward []string) []string {
	for _, flag := range forward {
		name, _, _ := strings.Cut(flag, "=")
		set := slices.ContainsFunc(args, func(arg string) bool {
			return arg == name ||
				strings.HasPrefix(arg, name+"=")
		})
		if set || name == "--dry-run" && !command.DryRun {
			continue
		}
		if name == "--dry-run" {
			args = slices.DeleteFunc(args, func(arg string) bool {
				return arg == "--live" ||
					strings.HasPrefix(arg, "--live=")
			})
		}
		args = append(args, flag)
	}
	return args
}

// shares reports whether a name is that of a shared flag.
func (c *Command) shares(name string) bool {
	return slices.ContainsFunc(sharedFor(c), func(p Param) bool { return p.Name == name })
}

// payloadArgs returns the members of a payload as arguments.
func payloadArgs(payload object) []string {
	var args []string
	for _, m := range payload {
		switch v := m.value.(type) {
		case bool:
			args = append(args, fmt.Sprintf("--%s=%t", m.name, v))
		case []any:
			for _, item := range v {
				args = append(args, "--"+m.name+"="+cell(item))
			}
		default:
			args = append(args, "--"+m.name+"="+cell(v))
		}
	}
	return args
}
