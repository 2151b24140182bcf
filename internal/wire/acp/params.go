package acp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/wire/jsonrpc"
)

// The requests of a client. Decode knows the names of the methods.
type (
	// Initialize begins the connection.
	Initialize struct {
		Wanted int // the version that the client prefers
		Client Client
	}
	// Authenticate asks whether there is a login.
	Authenticate struct{}
	// New begins a session.
	New struct{ Place }
	// Load resumes a session. Replay means that the client gets its past messages.
	Load struct {
		Session string
		Replay  bool
		Place
	}
	// Fork begins a session with the history of another.
	Fork struct {
		Session string
		Place
	}
	// List asks for the sessions. Dir, if not empty, selects the sessions in that directory.
	List struct{ Dir, Cursor string }
	// Close ends a session, which can be resumed later.
	Close struct{ Session string }
	// Delete removes a session.
	Delete struct{ Session string }
	// Set changes an option of a session: mode or model.
	Set struct{ Session, Option, Value string }
	// Prompt sends a message.
	Prompt struct {
		Session string
		Blocks  []Block
	}
	// Cancel ends the turn of a session.
	Cancel struct{ Session string }
	// CancelRequest cancels a request.
	CancelRequest struct{ ID json.RawMessage }
)

// Client is what the other side declared about itself.
type Client struct {
	Forms bool // it can show forms
	// it shows the output of commands in terminals that it creates: in version 2 every client, in version 1 by a
	// declaration in _meta
	Terminals   bool
	Notices     bool
	Compactions bool
}

// Place is the environment of a session.
type Place struct {
	Dir     string
	Dirs    []string
	Servers json.RawMessage // {"mcpServers": {…}}, or nil
}

// Block is a part of a message.
type Block struct {
	Text  string
	Media string // if not empty, Data has an image, a sound or a document
	Data  []byte
	Name  string
}

// Decode reads the parameters of a method. An unknown method is an error.
func Decode(v Version, method string, params json.RawMessage) (any, *jsonrpc.Error) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s: params is not an object", method)
	}
	p := &reading{method: method}
	if err := json.Unmarshal(params, &p.in); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s: %v", method, fault.InJSON(err))
	}
	result := p.decode(v)
	if p.wrong != nil {
		return nil, p.wrong
	}
	if result == nil {
		return nil, jsonrpc.Errorf(jsonrpc.MethodNotFound, "there is no method %s in version %d", method, v)
	}
	return result, nil
}

// params has the members of all requests.
type params struct {
	Version  *json.Number `json:"protocolVersion"`
	Client   capabilities `json:"clientCapabilities"`
	ClientV2 capabilities `json:"capabilities"`
	Session  *string      `json:"sessionId"`
	Dir      *string      `json:"cwd"`
	Dirs     []string     `json:"additionalDirectories"`
	Servers  []server     `json:"mcpServers"`
	Replay   *struct {
		Type string `json:"type"`
	} `json:"replayFrom"`
	Cursor  string          `json:"cursor"`
	Mode    *string         `json:"modeId"`
	Option  *string         `json:"configId"`
	Value   json.RawMessage `json:"value"`
	Prompt  []content       `json:"prompt"`
	Request json.RawMessage `json:"requestId"`
}

type capabilities struct {
	Elicitation *struct {
		Form *struct{} `json:"form"`
	} `json:"elicitation"`
	Session *struct {
		Compaction *struct{} `json:"compaction"`
		Notices    *struct{} `json:"notices"`
	} `json:"session"`
	Meta map[string]json.RawMessage `json:"_meta"`
}

type server struct {
	Type    string     `json:"type"`
	Name    string     `json:"name"`
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Env     []variable `json:"env"`
	URL     string     `json:"url"`
	Headers []variable `json:"headers"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Data     string    `json:"data"`
	Media    string    `json:"mimeType"`
	URI      string    `json:"uri"`
	Name     string    `json:"name"`
	Resource *resource `json:"resource"`
}

type resource struct {
	URI   string  `json:"uri"`
	Text  *string `json:"text"`
	Blob  string  `json:"blob"`
	Media string  `json:"mimeType"`
}

// reading decodes one request. wrong is the first error.
type reading struct {
	method string
	in     params
	wrong  *jsonrpc.Error
}

func (p *reading) fail(format string, args ...any) {
	if p.wrong == nil {
		p.wrong = jsonrpc.Errorf(jsonrpc.InvalidParams, "%s: "+format, append([]any{p.method}, args...)...)
	}
}

func (p *reading) need(member string, s *string) string {
	if s == nil || *s == "" {
		p.fail("%s is missing", member)
		return ""
	}
	return *s
}

func (p *reading) session() string { return p.need("sessionId", p.in.Session) }

// decode returns nil for an unknown method.
func (p *reading) decode(v Version) any {
	switch p.method {
	case "session/new":
		return New{p.place()}
	case "session/resume":
		return Load{p.session(), p.replay(), p.place()}
	case "session/fork":
		return Fork{p.session(), p.place()}
	case "session/list":
		return p.list()
	case "session/close":
		return Close{p.session()}
	case "session/delete":
		return Delete{p.session()}
	case "session/set_config_option":
		return Set{p.session(), p.need("configId", p.in.Option), p.value()}
	case "session/prompt":
		return p.prompt()
	case "session/cancel":
		return Cancel{p.session()}
	case "$/cancel_request":
		return CancelRequest{p.in.Request}
	}
	switch {
	case p.method == "authenticate" && v == V1:
		return Authenticate{}
	case p.method == "session/load" && v == V1:
		return Load{p.session(), true, p.place()}
	case p.method == "session/set_mode" && v == V1:
		return Set{p.session(), "mode", p.need("modeId", p.in.Mode)}
	}
	return nil
}

// Greeting reads initialize, which precedes the choice of a version.
func Greeting(raw json.RawMessage) (Initialize, *jsonrpc.Error) {
	p := &reading{}
	if err := json.Unmarshal(raw, &p.in); err != nil || len(raw) == 0 || raw[0] != '{' {
		// The form of a newer client's message is unknown too.
		p.in = params{}
		if json.Unmarshal(raw, &struct {
			Version **json.Number `json:"protocolVersion"`
		}{&p.in.Version}) != nil || p.in.Version == nil {
			return Initialize{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "initialize: invalid parameters")
		}
		if wanted, err := p.in.Version.Int64(); err != nil || wanted <= int64(V2) {
			return Initialize{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "initialize: invalid parameters")
		}
	}
	if p.in.Version == nil {
		return Initialize{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "initialize: protocolVersion is missing")
	}
	wanted, err := p.in.Version.Int64()
	if err != nil || wanted < 0 || wanted > 1<<16 {
		return Initialize{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "initialize: protocolVersion must be a whole number")
	}
	said := Initialize{Wanted: int(wanted)}
	for _, c := range []capabilities{p.in.Client, p.in.ClientV2} {
		said.Client.Forms = said.Client.Forms || c.Elicitation != nil && c.Elicitation.Form != nil
		said.Client.Notices = said.Client.Notices || c.Session != nil && c.Session.Notices != nil
		said.Client.Compactions = said.Client.Compactions || c.Session != nil && c.Session.Compaction != nil
		said.Client.Terminals = said.Client.Terminals || string(c.Meta["terminal_output"]) == "true"
	}
	return said, nil
}

// Agree returns the version to use with a client that supports up to wanted.
func Agree(wanted int) (Version, *jsonrpc.Error) {
	switch {
	case wanted >= int(V2):
		return V2, nil
	case wanted == int(V1):
		return V1, nil
	}
	e := jsonrpc.Errorf(unsupportedVersion, "protocol version %d is not supported; 1 and 2 are", wanted)
	e.Data = map[string]any{"requested": wanted, "supported": []Version{V1, V2}}
	return 0, e
}

func (p *reading) replay() bool {
	if p.in.Replay == nil {
		return false
	}
	if p.in.Replay.Type != "start" {
		p.fail("replayFrom: %q is not supported, start is", p.in.Replay.Type)
	}
	return true
}

func (p *reading) list() List {
	l := List{Cursor: p.in.Cursor}
	if p.in.Dir != nil && *p.in.Dir != "" {
		l.Dir = p.absolute("cwd", *p.in.Dir)
	}
	return l
}

func (p *reading) absolute(member, dir string) string {
	if dir != "" && !filepath.IsAbs(dir) {
		p.fail("%s is not absolute", member)
	}
	return filepath.Clean(dir)
}

func (p *reading) place() Place {
	place := Place{Dir: p.absolute("cwd", p.need("cwd", p.in.Dir)), Servers: p.servers()}
	for _, dir := range p.in.Dirs {
		place.Dirs = append(place.Dirs, p.absolute("additionalDirectories", dir))
	}
	return place
}

// servers converts the list to the format {"mcpServers": {…}}.
func (p *reading) servers() json.RawMessage {
	if len(p.in.Servers) == 0 {
		return nil
	}
	type known struct {
		Type    string            `json:"type"`
		Command string            `json:"command,omitempty"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		URL     string            `json:"url,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	all := map[string]known{}
	for _, s := range p.in.Servers {
		k := known{Type: s.Type, Command: s.Command, Args: s.Args, URL: s.URL}
		k.Type = cmp.Or(k.Type, "stdio")
		switch {
		case s.Name == "":
			p.fail("mcpServers: one has no name")
		case k.Type == "stdio" && k.Command == "", k.Type != "stdio" && k.URL == "":
			p.fail("mcpServers: %s lacks what its kind needs", s.Name)
		case k.Type != "stdio" && k.Type != "http":
			p.fail("mcpServers: %s is of the kind %s; stdio and http are taken", s.Name, k.Type)
		}
		k.Env, k.Headers = byName(s.Env), byName(s.Headers)
		all[s.Name] = k
	}
	data, _ := json.Marshal(map[string]any{"mcpServers": all}) // strings always encode
	return data
}

func byName(list []variable) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := map[string]string{}
	for _, v := range list {
		m[v.Name] = v.Value
	}
	return m
}

func (p *reading) value() string {
	var word string
	if json.Unmarshal(p.in.Value, &word) != nil || word == "" {
		p.fail("value is the name of one that is offered")
	}
	return word
}

func (p *reading) prompt() Prompt {
	said := Prompt{Session: p.session()}
	if len(p.in.Prompt) == 0 {
		p.fail("prompt is empty")
	}
	for _, c := range p.in.Prompt {
		said.Blocks = append(said.Blocks, p.block(c))
	}
	return said
}

func (p *reading) block(c content) Block {
	switch c.Type {
	case "text":
		return Block{Text: c.Text}
	case "image":
		if c.Media == "" {
			p.fail("an image has no mimeType")
		}
		return Block{Media: c.Media, Data: p.bytes(c.Data), Name: c.URI}
	case "audio":
		p.fail("sounds are not taken")
	case "resource_link":
		return Block{Text: "[" + c.Name + "](" + c.URI + ")"}
	case "resource":
		switch r := c.Resource; {
		case r == nil || r.URI == "":
			p.fail("a resource has no uri")
		case r.Text != nil:
			return Block{Text: "\n<resource uri=\"" + strings.ReplaceAll(r.URI, `"`, "%22") + "\">\n" + *r.Text +
				"\n</resource>\n"}
		case r.Media == "":
			p.fail("the resource %s has no mimeType", r.URI)
		default:
			return Block{Media: r.Media, Data: p.bytes(r.Blob), Name: r.URI}
		}
	default:
		p.fail("content of the type %q is not known", c.Type)
	}
	return Block{}
}

func (p *reading) bytes(encoded string) []byte {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		p.fail("data is not base64")
	}
	return data
}
