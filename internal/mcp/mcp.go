// Package mcp is the client side of the Model Context Protocol: the tools of servers that a user has configured.
//
// It promises that a server costs bounded time and memory, whatever it sends: every wait has a time limit, every line,
// list and result a size limit, and omissions are reported; that a server which dies gives an error with the end of its
// output; and that nothing of it is left after Close. It refuses what a server may request: to call the model, to ask
// the user, and to see more than the directories that it was given. It starts nothing that a repository configured: the
// caller decides whose configuration counts.
package mcp

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/proto/jsonrpc"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

// Server is a configured server: a program, an address, or a part of the host.
type Server struct {
	Name    string
	Command []string          // the program and its arguments
	Env     map[string]string // over Options.Environ
	Dir     string            // empty: Options.Dir
	URL     string            // of Streamable HTTP, in place of Command
	Header  map[string]string
	Hosted  bool          // it is part of the host, and has neither Command nor URL
	Call    time.Duration // time limit of a call; 0: Options.Call
}

// Child is a running program; process.Child implements it.
type Child interface {
	Wait() process.Ending
	End(os.Signal)
}

// Options are what all servers share.
type Options struct {
	Start   func(process.Plan) (Child, error) // nil: process.Start
	Environ []string                          // of programs; nil: what the function Environ selects from ours
	Dir     string                            // where programs run; empty: our directory
	Roots   []string                          // directories that a server may be told of; nil: none
	// gets messages for people, one line each; may be nil; may be called concurrently
	Log     func(string)
	Changed func(*Conn)  // the list of tools has changed; may be nil
	HTTP    *http.Client // nil: a new client
	Carry   Carry        // to servers in the host; nil: there are none
	Version string       // our version, for servers

	Open time.Duration // until a server has listed its tools; 0: 30 s
	Call time.Duration // of a call; 0: 10 minutes
	Rest time.Duration // from the end of a program's input to SIGTERM, and from there to SIGKILL; 0: 2 s
}

// The limits on what a server may send.
const (
	maxMessage  = 10 << 20  // one message
	maxText     = 256 << 10 // of a result
	maxImages   = 20        // of a result
	maxTools    = 512
	maxPages    = 64
	maxDescribe = 16 << 10 // of a tool's description
	maxSchema   = 128 << 10
	maxStderr   = 4 << 10  // the end is kept
	maxLogged   = 32       // log lines about one server, so that it cannot flood
	maxAnswers  = 64       // our answers to a server that does not read
	maxProgress = 1 << 10  // of one progress message
	maxHeader   = 64 << 10 // of HTTP, whose bodies have their own limits
)

const (
	openTakes  = 30 * time.Second
	callTakes  = 10 * time.Minute
	closeTakes = 2 * time.Second
)

// Conn is a connected server. Its methods may be called concurrently.
//
//	Open: transport ── initialize ──▶ ready ── tools/list ──▶ in use ── Close ──▶ closed
//	                                              ▲             │  └── the server ends: dead is set
//	                                              └─ list_changed
type Conn struct {
	server  Server
	options Options
	wire    transport

	Protocol string // the version that was agreed on; it does not change after Open

	mu          sync.Mutex
	tools       []toolspec.Tool
	next        int64
	pending     map[int64]*call
	dead        error // why there will be no more answers
	logged      int
	listing     bool // a new list was requested
	relistAgain bool // and another one after it
	busy        int  // number of background tasks
	stop        chan struct{}
	group       sync.WaitGroup
}

// transport carries messages to a server. It passes the server's messages to Conn.receive.
type transport interface {
	// send passes on one message; id is that of a request, or 0. It may return before the server has it.
	send(ctx context.Context, id int64, message []byte) error
	// ready is called when the handshake is over.
	ready(protocol string)
	// close ends the server, and returns when nothing of it is left.
	close()
}

// Open connects to a server and asks what tools it has.
func Open(ctx context.Context, s Server, o Options) (*Conn, error) {
	if o.Open <= 0 {
		o.Open = openTakes
	}
	if o.Rest <= 0 {
		o.Rest = closeTakes
	}
	if s.Call <= 0 {
		s.Call = o.Call
	}
	if s.Call <= 0 {
		s.Call = callTakes
	}
	c := &Conn{server: s, options: o, pending: map[int64]*call{}, stop: make(chan struct{})}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Open,
		slow{"did not say within " + o.Open.String() + " what tools it has"})
	defer cancel()
	var err error
	switch {
	case s.Hosted:
		err = newHosted(c)
	case len(s.Command) > 0 && s.URL == "":
		err = startProgram(c)
	case len(s.Command) == 0 && s.URL != "":
		err = newHTTP(c)
	default:
		err = fault.New(fault.ConfigInvalid, "the MCP server %s must have either a command or a url", s.Name)
	}
	if err != nil {
		return nil, err
	}
	if err = c.handshake(ctx); err == nil {
		err = c.list(ctx)
	}
	if err != nil {
		err = c.faultOf(err)
		c.Close()
		return nil, err
	}
	return c, nil
}

// Name returns what the configuration calls the server.
func (c *Conn) Name() string { return c.server.Name }

// Tools returns the server's current tools, in its order.
func (c *Conn) Tools() []toolspec.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tools)
}

// Err returns why the server gives no more answers, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Close ends the server. It takes a few seconds at most; open calls return an error.
func (c *Conn) Close() {
	c.mu.Lock()
	first := c.stop != nil
	if first {
		close(c.stop)
		c.stop = nil
	}
	c.mu.Unlock()
	c.fail(fault.New(fault.Interrupted, "the MCP server %s was closed", c.server.Name))
	if first {
		c.wire.close()
	}
	c.group.Wait()
}

// versions returns the supported versions of the protocol, the preferred one first. Their differences do not affect
// tools.
func versions() []string { return []string{"2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05"} }

// greeting is the server's answer to initialize.
type greeting struct {
	ProtocolVersion string `json:"protocolVersion"`
}

func (c *Conn) handshake(ctx context.Context) error {
	answer, err := c.hello(ctx)
	if err != nil {
		return err
	}
	c.Protocol = answer.ProtocolVersion
	c.wire.ready(c.Protocol)
	return c.wire.send(ctx, 0, jsonrpc.Notification("notifications/initialized", nil))
}

// hello agrees on a version of the protocol.
func (c *Conn) hello(ctx context.Context) (greeting, error) {
	capabilities := map[string]any{}
	if c.options.Roots != nil {
		capabilities["roots"] = map[string]any{}
	}
	var answer greeting
	err := c.call(ctx, "initialize", map[string]any{
		"protocolVersion": versions()[0], "capabilities": capabilities,
		"clientInfo": map[string]any{"name": "omniagent", "version": cmp.Or(c.options.Version, "0")},
	}, &answer)
	if err == nil && !slices.Contains(versions(), answer.ProtocolVersion) {
		err = fault.New(fault.Down, "the MCP server %s speaks version %q of the protocol, which is not understood",
			c.server.Name, text.OneLine(answer.ProtocolVersion, 40)).Hint("Use a version of the server that speaks %s.",
			strings.Join(versions(), ", "))
	}
	return answer, err
}

// log writes a line for people, up to a limit.
func (c *Conn) log(line string) {
	c.mu.Lock()
	c.logged++
	told := c.logged
	c.mu.Unlock()
	if c.options.Log == nil || told > maxLogged {
		return
	}
	if told == maxLogged {
		line = "there is more to complain about, which is not told"
	}
	c.options.Log("MCP server " + c.server.Name + ": " + line)
}
