package modelserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// operation is the operation of a path.
type operation int

const (
	unknown operation = iota
	generate
	count
	models
)

// target is the meaning of a path.
type target struct {
	wire   Wire
	call   operation
	model  string // Gemini names it in the path
	stream bool   // so does it this
	array  bool   // a stream without alt=sse
	id     string // GET models/ID
}

// route parses the path. An unknown one still gets the wire that the client most likely speaks, so that its error can
// be read.
func route(q *http.Request) target {
	path := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	// Each client adds parts of its own to the base address, some of them twice. They mean nothing.
	prefixes := []string{"", "v1", "v1beta", "v1alpha", "api", "openai", "anthropic"}
	for len(path) > 0 && slices.Contains(prefixes, path[0]) {
		path = path[1:]
	}
	p := target{wire: likely(q)}
	rest := strings.Join(path, "/")
	if name, ok := strings.CutPrefix(rest, "models"); ok && (name == "" || name[0] == '/') {
		return p.models(q, strings.TrimPrefix(name, "/"))
	}
	if q.Method != http.MethodPost {
		return p
	}
	switch rest {
	case "messages":
		p.wire, p.call = Messages, generate
	case "messages/count_tokens":
		p.wire, p.call = Messages, count
	case "responses":
		p.wire, p.call = Responses, generate
	case "chat/completions":
		p.wire, p.call = Chat, generate
	}
	return p
}

func (p target) models(q *http.Request, name string) target {
	id, method, called := strings.Cut(name, ":")
	if !called {
		if q.Method == http.MethodGet {
			p.call, p.id = models, name
		}
		return p
	}
	if q.Method != http.MethodPost {
		return p
	}
	p.wire, p.model = Gemini, id
	switch method {
	case "generateContent":
		p.call = generate
	case "streamGenerateContent":
		p.call, p.stream = generate, true
		p.array = q.URL.Query().Get("alt") != "sse"
	case "countTokens":
		p.call = count
	}
	return p
}

// likely guesses the wire from the headers and the path.
func likely(q *http.Request) Wire {
	switch path := q.URL.Path; {
	case q.Header.Get("Anthropic-Version") != "" || strings.Contains(path, "/messages"):
		return Messages
	case q.Header.Get("X-Goog-Api-Key") != "" || strings.Contains(path, "v1beta"):
		return Gemini
	case strings.Contains(path, "/chat"):
		return Chat
	}
	return Responses
}

func (w Wire) parse(body []byte, where target) (*Request, error) {
	switch w {
	case Messages:
		return parseMessages(body)
	case Chat:
		return parseChat(body)
	case Gemini:
		r, err := parseGemini(body)
		if err != nil {
			return nil, err
		}
		if r.Model, err = url.PathUnescape(where.model); err != nil {
			r.Model = where.model
		}
		r.Stream, r.array = where.stream, where.array
		return r, nil
	default:
		return parseResponses(body)
	}
}

func (w Wire) encoder(r *Request, o Options) encoder {
	switch w {
	case Messages:
		return &messagesEncoder{r: r, o: o}
	case Chat:
		return &chatEncoder{r: r, o: o}
	case Gemini:
		return &geminiEncoder{r: r, o: o}
	default:
		return &responsesEncoder{r: r, o: o}
	}
}

// callPrefix begins the ids of calls.
func (w Wire) callPrefix() string {
	if w == Messages {
		return "toolu"
	}
	return "call"
}

// modelNames returns the names in lists. A client may request any other.
func modelNames(w Wire) []string {
	switch w {
	case Messages:
		return []string{"claude-opus-5-5"}
	case Gemini:
		return []string{"gemini-3.8-flash"}
	default:
		return []string{"gpt-6.1-sol"}
	}
}

func listModels(w http.ResponseWriter, where target) {
	names := modelNames(where.wire)
	if where.id != "" {
		names = []string{where.id}
	}
	list := []any{}
	for _, n := range names {
		switch where.wire {
		case Messages:
			list = append(list, object("type", "model", "id", n, "display_name", n, "created_at",
				"2026-01-01T00:00:00Z"))
		case Gemini:
			list = append(list, object("name", "models/"+n, "version", "1", "displayName", n, "inputTokenLimit", 1<<20,
				"outputTokenLimit", 1<<16,
				"supportedGenerationMethods", []string{"generateContent", "countTokens"}))
		default:
			list = append(list, object("id", n, "object", "model", "created", 1767225600, "owned_by", "omniagent"))
		}
	}
	switch {
	case where.id != "":
		respond(w, encode(list[0]))
	case where.wire == Messages:
		respond(w, object("data", list, "has_more", false, "first_id", names[0], "last_id", names[len(names)-1]))
	case where.wire == Gemini:
		respond(w, object("models", list))
	default:
		respond(w, object("object", "list", "data", list))
	}
}

func countTokens(w http.ResponseWriter, where target, size int) {
	name := "input_tokens"
	if where.wire == Gemini {
		name = "totalTokens"
	}
	respond(w, object(name, size/4+1))
}
