package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/scripted"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// client is the other side of a Host, in the hands of a test.
type client struct {
	t    *testing.T
	host *Host
	in   *io.PipeWriter
	out  *bufio.Scanner
	code chan int
	dir  string   // of its sessions
	read []string // lines that no call has returned yet
	last int      // request
}

// connect starts a Host whose sessions are with an agent. prepare may change it before that.
func connect(t *testing.T, a *scripted.Agent, prepare func(*Host)) *client {
	t.Helper()
	in, said := io.Pipe()
	unread, out := io.Pipe()
	store, ids := session.Open(t.TempDir()), 0
	ignored := func(string, ...any) {}
	h := &Host{
		Agent: "native", Open: a.Opener(store), Sessions: ResumableSessions{Store: store},
		In: in, Out: out, Log: ignored,
		Modes: []wire.Choice{{ID: "prompt", Name: "prompt"}, {ID: "yolo", Name: "yolo"}},
		NewID: func() string { ids++; return fmt.Sprint("session-", ids) },
		Spec:  agent.Spec{Terms: agent.Terms{Mode: setting.Prompt, Bypass: true}},
	}
	if prepare != nil {
		prepare(h)
	}
	c := &client{t: t, host: h, in: said, out: bufio.NewScanner(unread), code: make(chan int, 1), dir: t.TempDir()}
	late := time.AfterFunc(hermetic.Patience, func() { _ = unread.CloseWithError(os.ErrDeadlineExceeded) })
	t.Cleanup(func() {
		late.Stop()
		_ = said.Close()
		for c.out.Scan() {
		}
	})
	go func() {
		c.code <- h.Run(t.Context())
		_ = out.Close()
	}()
	return c
}

// begin opens a session in a version of the protocol.
func (c *client) begin(version int) string {
	c.t.Helper()
	c.must("initialize", fmt.Sprintf(`{"protocolVersion":%d,"clientCapabilities":{},"info":{"name":"t","version":"1"}}`,
		version))
	var opened struct{ SessionID string }
	_ = json.Unmarshal(c.must("session/new", `{"cwd":"`+c.dir+`","mcpServers":[]}`), &opened)
	return opened.SessionID
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// request sends a request and returns its id.
func (c *client) request(method, params string) int {
	c.t.Helper()
	c.last++
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`, c.last, method, params))
	return c.last
}

func (c *client) notify(method, params string) {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// prompt sends a message.
func (c *client) prompt(session, text string) int {
	c.t.Helper()
	return c.request("session/prompt", `{"sessionId":"`+session+`","prompt":[{"type":"text","text":"`+text+`"}]}`)
}

// until returns the first line, among those that were not returned yet, that fits.
func (c *client) until(what string, fits func(line string) bool) string {
	c.t.Helper()
	for i := 0; ; i++ {
		if i == len(c.read) {
			if !c.out.Scan() {
				c.t.Fatalf("no %s:\n%s", what, strings.Join(c.read, "\n"))
			}
			c.read = append(c.read, c.out.Text())
		}
		if line := c.read[i]; fits(line) {
			c.read = append(c.read[:i:i], c.read[i+1:]...)
			return line
		}
	}
}

// told returns the first line that has all the words.
func (c *client) told(words ...string) string {
	c.t.Helper()
	return c.until(strings.Join(words, " and "), func(line string) bool {
		for _, word := range words {
			if !strings.Contains(line, word) {
				return false
			}
		}
		return true
	})
}

// text is what the agent has said, as far as the lines were not returned.
func (c *client) text() string {
	var all strings.Builder
	for _, line := range c.read {
		var m struct {
			Params struct {
				Update struct {
					SessionUpdate string
					Content       struct{ Text string }
				}
			}
		}
		// other updates have a content of another form
		if json.Unmarshal([]byte(line), &m) == nil && m.Params.Update.SessionUpdate == "agent_message_chunk" {
			all.WriteString(m.Params.Update.Content.Text)
		}
	}
	return all.String()
}

// response is what a request is answered with.
func (c *client) response(id int) (m jsonrpc.Message) {
	c.t.Helper()
	c.until(fmt.Sprint("answer to request ", id), func(line string) bool {
		m = jsonrpc.Message{}
		return json.Unmarshal([]byte(line), &m) == nil && m.Method == "" && string(m.ID) == fmt.Sprint(id)
	})
	return m
}

// must is the result of a request.
func (c *client) must(method, params string) json.RawMessage {
	c.t.Helper()
	m := c.response(c.request(method, params))
	if m.Error != nil {
		c.t.Fatalf("%s: %v", method, m.Error)
	}
	return m.Result
}

// refused is the error of a request.
func (c *client) refused(method, params string) jsonrpc.Error {
	c.t.Helper()
	m := c.response(c.request(method, params))
	if m.Error == nil {
		c.t.Errorf("%s %s: %s", method, params, m.Result)
		return jsonrpc.Error{}
	}
	return *m.Error
}

// stops requires that a message is answered for a reason.
func (c *client) stops(prompt int, reason string) {
	c.t.Helper()
	var r struct{ StopReason string }
	m := c.response(prompt)
	if _ = json.Unmarshal(m.Result, &r); r.StopReason != reason {
		c.t.Errorf("message %d: %s %v, not %s", prompt, m.Result, m.Error, reason)
	}
}

// reply answers a request of the host.
func (c *client) reply(line, answer string) {
	c.t.Helper()
	var m jsonrpc.Message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		c.t.Fatal(err)
	}
	c.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`)
}

// end goes away, and returns the exit code.
func (c *client) end() int {
	_ = c.in.Close()
	for c.out.Scan() {
		c.read = append(c.read, c.out.Text())
	}
	return <-c.code
}
