// Package mcp is the client side of the Model Context Protocol: the tools of servers that a user has configured.
//
// A server only costs bounded time and memory: every wait has a time limit, every line, list and result has a size
// limit, and omissions are reported. If a server dies, the error has the end of its output. Close leaves nothing
// running. Requests of a server to call the model or to ask the user are refused, and it only learns the directories in
// Options.Roots. The caller decides whose configuration counts; servers of a repository should not.
package mcp

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/wire/jsonrpc"
)

// Server is a configured server: a program, an address, or part of the host.
type Server struct {
	Name    string
	Command []string          // the program and its arguments
	Env     map[string]string // overrides the variables of Options.Programs
	Dir     string            // absolute; empty for one of its own
	URL     string            // address for Streamable HTTP, instead of Command
	Header  map[string]string
	Hosted  bool          // it is part of the host, and has neither Command nor URL
	Call    time.Duration // time limit of a call; 0 for 10 minutes
}

// Options are shared by all servers.
type Options struct {
	Programs process.Programs // starts programs
	Roots    []string         // directories to report to servers
	// gets messages for people, one line each; may be nil; may be called concurrently
	Log     func(string)
	Carry   Carry  // for servers in the host; may be nil
	Version string // our version, reported to servers

	Open time.Duration // time limit until a server has listed its tools; 0 for 30 s
	Rest time.Duration // from the end of a program's input to SIGTERM, and then to SIGKILL; 0 for 2 s
}

// Limits of what a server may send.
const (
	maxMessage  = 10 << 20  // one message
	maxText     = 256 << 10 // of a result
	maxImages   = 20        // of a result
	maxTools    = 512
	maxPages    = 64
	maxDescribe = 16 << 10 // of a tool's description
	maxSchema   = 128 << 10
	maxStderr   = 4 << 10  // only the end is kept
	maxLogged   = 32       // log lines about one server
	maxAnswers  = 64       // queued responses to a server that does not read
	maxProgress = 1 << 10  // of one progress message
	maxHeader   = 64 << 10 // of HTTP headers
)

const (
	openTakes  = 30 * time.Second
	callTakes  = 10 * time.Minute
	closeTakes = 2 * time.Second
)

// Conn is a connected server. It is safe for concurrent use.
//
//	Open: transport ── initialize ──▶ ready ── tools/list ──▶ in use ── Close ──▶ closed
//	                                                              └── the server ends: dead is set
//
// A list of tools that changes later is not asked for again: a conversation keeps the tools with which it began.
type Conn struct {
	server  Server
	options Options
	wire    transport
	life    context.Context // ends with Close
	end     context.CancelFunc

	Protocol string // the agreed version; it does not change after Open

	tools []event.ToolSpec

	mu      sync.Mutex
	next    int64
	pending map[int64]*pendingCall
	dead    error // why there will be no more responses
	logged  int
	busy    int // number of background tasks
	group   sync.WaitGroup
}

// transport carries messages to a server. It passes the server's messages to Conn.receive.
type transport interface {
	// send passes on one message. id is the id of a request, or 0. It may return before the server has the message.
	send(ctx context.Context, id int64, message []byte) error
	// ready is called when the handshake is over.
	ready(protocol string)
	// close ends the server, and returns when everything has ended.
	close()
}

// Open connects to a server and lists its tools.
func Open(ctx context.Context, s Server, o Options) (*Conn, error) {
	o.Open, o.Rest, s.Call = cmp.Or(o.Open, openTakes), cmp.Or(o.Rest, closeTakes), cmp.Or(s.Call, callTakes)
	c := &Conn{server: s, options: o, pending: map[int64]*pendingCall{}}
	c.life, c.end = context.WithCancel(context.Background())
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

// Name returns the name of the server in the configuration.
func (c *Conn) Name() string { return c.server.Name }

// Tools returns the server's tools, in its order.
func (c *Conn) Tools() []event.ToolSpec { return c.tools }

// Err returns why there will be no more responses, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Close ends the server, within a few seconds. Open calls return an error.
func (c *Conn) Close() {
	c.fail(fault.New(fault.Interrupted, "the MCP server %s was closed", c.server.Name))
	c.mu.Lock()
	first := c.life.Err() == nil
	c.end()
	c.mu.Unlock()
	if first {
		c.wire.close()
	}
	c.group.Wait()
}

// versions returns the supported versions of the protocol, the preferred one first. Their differences do not affect
// tools.
func versions() []string { return []string{"2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05"} }

// greeting is the server's response to initialize.
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
		err = fault.New(fault.ServiceDown,
			"the MCP server %s speaks version %q of the protocol, which is not supported",
			c.server.Name, text.OneLine(answer.ProtocolVersion, 40)).Hint("Use a version of the server that speaks %s.",
			strings.Join(versions(), ", "))
	}
	return answer, err
}

// log writes a line for people. The number of lines is limited.
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
