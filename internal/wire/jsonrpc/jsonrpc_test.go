package jsonrpc_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/wire/jsonrpc"
)

// TestParse: what a server takes, and what it answers to the rest. The lines of proto/acp are a longer list.
func TestParse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`:        `1 m [1]`,
		` {"jsonrpc":"2.0","id":"<é\u0000>","method":"m"} `:         `"<é\u0000>" m `,
		`{"jsonrpc":"2.0","id":12345678901234567890,"method":"m"}`:  `12345678901234567890 m `,
		`{"jsonrpc":"2.0","id":null,"method":"m"}`:                  `null m `,
		`{"jsonrpc":"2.0","Method":"x","method":"m","ID":1}`:        ` m `,
		`{"jsonrpc":"2.0","id":1,"result":null}`:                    `1  `,
		`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}`: `silent`,
		`{"jsonrpc":"2.0","id":1,"error":7}`:                        `1  `,
		`{"id":1,"result":{}}`:                                      `silent`,
		`{"jsonrpc":"2.0","id":[],"method":"m"}`:                    `-32600`,
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"m\"}":    `-32600`,
		`[]`: `-32600`, `7`: `-32600`, ``: `-32700`,
		`{`: `-32700`,
	} {
		m := jsonrpc.Parse([]byte(line))
		got := string(m.ID) + " " + m.Method + " " + string(m.Params)
		switch {
		case m.Silent:
			got = "silent"
		case m.Wrong != nil:
			got = strconv.Itoa(m.Wrong.Code)
		}
		if got != want {
			t.Errorf("%s: %s instead of %s", line, got, want)
		}
	}
}

// TestLines: what is written, byte for byte.
func TestLines(t *testing.T) {
	t.Parallel()
	id := json.RawMessage(`"<a&b>"`)
	for want, got := range map[string][]byte{
		`{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"<"}}`: jsonrpc.Request(7, "m",
			map[string]string{"a": "<"}),
		`{"jsonrpc":"2.0","method":"m"}`:               jsonrpc.Notification("m", nil),
		`{"jsonrpc":"2.0","id":"<a&b>","result":null}`: jsonrpc.Result(id, nil),
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no x"}}`: jsonrpc.Failure(nil,
			jsonrpc.Errorf(jsonrpc.MethodNotFound, "no %s", "x")),
		`{"jsonrpc":"2.0","id":"<a&b>","error":{"code":-32603,"message":"the result is not JSON"}}`: jsonrpc.
			Result(id, math.Inf(1)),
		`{"method":"m","params":"\"jsonrpc\":\"2.0\","}`: jsonrpc.Bare(jsonrpc.Notification("m", `"jsonrpc":"2.0",`)),
	} {
		if string(got) != want+"\n" {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	if line := jsonrpc.Request(1, "m", json.RawMessage("{")); line != nil {
		t.Errorf("%s", line)
	}
}

// TestLongMessages: an error does not repeat all of what the peer sent.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	e := jsonrpc.Errorf(jsonrpc.MethodNotFound, "there is no method %s", strings.Repeat("é", 30<<20))
	if !strings.HasPrefix(e.Message, "there is no method éé") || !strings.HasSuffix(e.Message, "é…") ||
		len(e.Message) > 10<<10 {
		t.Errorf("%d bytes", len(e.Message))
	}
}

// FuzzParse: the answer to any message is one line under the same id, and both readers agree on that id.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{}}`))
	f.Add([]byte(`{"id":null,"error":{"code":1.5}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := jsonrpc.Parse(data)
		var back struct {
			ID json.RawMessage `json:"id"`
		}
		line := jsonrpc.Result(m.ID, struct{}{})
		if m.ID == nil {
			line = jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.InternalError, "x"))
		}
		err := json.Unmarshal(line, &back)
		if err != nil || strings.Count(string(line), "\n") != 1 || m.ID != nil && string(m.ID) != string(back.ID) {
			t.Fatalf("%s: %q", data, line)
		}
		if l, ok := jsonrpc.Read(data); m.Wrong == nil && ok && string(m.ID) != "null" && m.Method == l.Method &&
			string(m.ID) != string(l.ID) {
			t.Fatalf("%s: %s and %s", data, m.ID, l.ID)
		}
	})
}
