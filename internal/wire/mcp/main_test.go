package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

const roleVariable = "OMNIAGENT_MCP_TEST_ROLE"

// TestMain lets the test binary be the guard, or a server.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	role := os.Getenv(roleVariable)
	if role == "" {
		hermetic.InMemory()
		hermetic.AtOnce("4")
		os.Exit(m.Run())
	}
	newScripted(role, os.Stdout).serve(os.Stdin)
	os.Exit(0)
}

// scripted is a server that behaves in many ways.
type scripted struct {
	role  string
	out   io.Writer
	lists int
	calls map[string]string // open calls, by id
	asked map[string]string // what the server asked, and the answers
	await string            // the id of a call that waits for answers of the client
}

func newScripted(role string, out io.Writer) *scripted {
	return &scripted{role: role, out: out, calls: map[string]string{}, asked: map[string]string{}}
}

func (s *scripted) print(line string) { fmt.Fprintln(s.out, line) }

func (s *scripted) result(id, result string) {
	s.print(`{"result":` + result + `,"jsonrpc":"2.0","id":` + id + `}`)
}

func (s *scripted) text(id, text string) {
	quoted, _ := json.Marshal(text)
	s.result(id, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (s *scripted) serve(in io.Reader) {
	switch s.role {
	case "mute", "stubborn":
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		if s.role == "stubborn" {
			go func() { _, _ = io.Copy(io.Discard, os.Stdin) }()
		}
		time.Sleep(time.Hour)
	case "die":
		fmt.Fprintln(os.Stderr,
			"a first line\ncannot open the database: \x1b[31mAPI_KEY=sk-canary0123456789abcdef0123456789abcdef01234567")
		os.Exit(3)
	case "early": // asks before it is asked
		s.print(`{"jsonrpc":"2.0","id":"p0","method":"ping"}`)
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if s.role == "lingers" {
				time.Sleep(time.Hour)
			}
			return
		}
		if out := s.handle([]byte(line)); out == "stop reading" {
			time.Sleep(time.Hour)
		}
	}
}

// handle answers one message of the client.
func (s *scripted) handle(line []byte) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Name            string
			Cursor          string
			Arguments       json.RawMessage
			RequestID       json.RawMessage `json:"requestId"`
			Meta            struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		fmt.Fprintln(os.Stderr, "no message:", err)
		os.Exit(9)
	}
	id := string(m.ID)
	if s.role == "garbage" {
		s.print("Server started on port " +
			"3000\n{\"half\":\n[1,2,\"x\"]\n\n{}\n{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n\xff\xfe")
	}
	switch m.Method {
	case "initialize":
		version := m.Params.ProtocolVersion
		switch s.role {
		case "old":
			version = "2024-11-05"
		case "future":
			version = "2099-01-01"
		case "refuses":
			s.print(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32001,"message":"no licence"}}`)
			return ""
		}
		s.result(id, `{"protocolVersion":"`+version+
			`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1.2"},"instructions":"be kind\u001b[31m"}`)
	case "tools/list":
		s.list(id, m.Params.Cursor)
	case "tools/call":
		return s.call(id, m.Params.Name, m.Params.Arguments, string(m.Params.Meta.Token))
	case "notifications/cancelled":
		delete(s.calls, string(m.Params.RequestID))
		if path := os.Getenv("CANCELLED"); path != "" {
			_ = os.WriteFile(path, m.Params.RequestID, 0o600)
		}
	case "":
		if id != `"p0"` {
			s.asked[id] = string(m.Result) + string(m.Error)
		}
		if len(s.asked) == 4 && s.await != "" {
			all, _ := json.Marshal(s.asked)
			s.text(s.await, string(all))
		}
	}
	return ""
}

func (s *scripted) list(id, cursor string) {
	s.lists++
	switch s.role {
	case "pages":
		s.result(id, `{"tools":[{"name":"t`+strconv.Itoa(s.lists)+`"}],"nextCursor":"c`+strconv.Itoa(s.lists)+`"}`)
	case "circle":
		s.result(id, `{"tools":[{"name":"t`+strconv.Itoa(s.lists)+`"}],"nextCursor":"same"}`)
	case "many":
		var all []string
		for i := range 600 {
			all = append(all, `{"name":"t`+strconv.Itoa(i)+`"}`)
		}
		s.result(id, `{"tools":[`+strings.Join(all, ",")+`]}`)
	case "none":
		s.print(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"Method not found"}}`)
	case "odd":
		s.result(id,
			`{"tools":[{"name":"a b/ü","description":"one\u001b[2J\ntwo","inputSchema":{"properties":{"x":{}}},"annotations":{"readOnlyHint":true,"title":"T"}},`+
				`{"name":"list","inputSchema":{"type":"array"}},{"name":"long","inputSchema":{"type":"object","description":"`+strings.Repeat("x", 200_000)+`"}},`+
				`{"name":7},{"name":"a b/ü"},{"name":""},{"name":"a_b__","inputSchema":null}]}`)
	case "split":
		if cursor == "" {
			s.result(id, `{"tools":[{"name":"first"}],"nextCursor":"2"}`)
		} else {
			s.result(id, `{"tools":[{"name":"second of `+cursor+`"}]}`)
		}
	default:
		s.result(id,
			`{"tools":[{"name":"echo","title":"Echo","description":"says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`)
	}
}

// Long because each tool is a few lines.
func (s *scripted) call(id, name string, arguments json.RawMessage, token string) string {
	switch name {
	case "echo":
		s.text(id, string(arguments))
	case "environment":
		all, _ := json.Marshal(os.Environ())
		s.text(id, string(all))
	case "directory":
		dir, _ := os.Getwd()
		s.text(id, dir)
	case "parts":
		s.result(id,
			`{"content":[{"type":"text","text":"one"},{"type":"image","mimeType":"image/png","data":"AAEC"},{"type":"image","mimeType":"image/svg+xml","data":"AAEC"},`+
				`{"type":"image","mimeType":"image/png","data":"%%"},{"type":"audio","mimeType":"audio/wav","data":"AAEC"},{"type":"resource_link","uri":"file:///x","name":"X"},`+
				`{"type":"resource","resource":{"uri":"file:///y","text":"why"}},{"type":"resource","resource":{"uri":"file:///z","mimeType":"application/zip","blob":"AAEC"}},`+
				`{"type":"resource","resource":{"uri":"file:///i","mimeType":"image/gif","blob":"AAEC"}},{"type":"hologram"},7],"structuredContent":{"a":1},"isError":true}`)
	case "structured":
		s.result(id, `{"content":[],"structuredContent":{"a":[1,2]}}`)
	case "refused":
		// the id as a text
		s.print(`{"jsonrpc":"2.0","id":"` + id + `","error":{"code":-32602,"message":"wrong\u001b[31m arguments"}}`)
	case "nothing":
		s.print(`{"jsonrpc":"2.0","id":` + id + `}`)
	case "twice":
		s.text(id, "first")
		s.text(id, "second")
	case "batch":
		s.print(`[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":` + id +
			`,"result":{"content":[{"type":"text","text":"of a list"}]}}]`)
	case "progress":
		for i := range 3 {
			s.print(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token +
				`,"progress":` + strconv.Itoa(i+1) + `,"total":3,"message":"step"}}`)
		}
		s.print(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":1}}`)
		s.text(id, "done")
	case "asks":
		s.await = id
		for _, method := range []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create"} {
			s.print(`{"jsonrpc":"2.0","id":"` + method + `","method":"` + method + `","params":{}}`)
		}
	case "silent":
		s.calls[id] = name
	case "open":
		all, _ := json.Marshal(s.calls)
		s.text(id, string(all))
	case "crash":
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 10_000)+"segmentation fault")
		os.Exit(139)
	case "huge", "huge first":
		begin, end := `{"result":{"content":[{"type":"text","text":"`, `"}]},"jsonrpc":"2.0","id":`+id+`}`
		if name == "huge first" {
			begin, end = `{"id":`+id+`,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"`, `"}]}}`
		}
		fmt.Fprint(s.out, begin)
		block := strings.Repeat("0123456789abcdef", 4096)
		size := 100 << 20
		if name == "huge first" {
			size = 12 << 20
		}
		for range size / len(block) {
			fmt.Fprint(s.out, block)
		}
		s.print(end)
	case "long":
		s.text(id, strings.Repeat("é", maxText))
	case "flood":
		for range 5000 {
			s.print(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			s.print(`{"jsonrpc":"2.0","id":4711,"result":{}}`)
		}
		s.text(id, "flooded")
	case "stop reading":
		s.text(id, "I read no more")
		return "stop reading"
	}
	return ""
}
