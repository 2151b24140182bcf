package start

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// asker is a model API that answers both wires with ok and keeps who asked what.
type asker struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string // path, credential, model and limit of each request
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	a := &asker{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var body struct {
			Model    string `json:"model"`
			Max      int    `json:"max_tokens"`
			Complete int    `json:"max_completion_tokens"`
		}
		_ = json.NewDecoder(q.Body).Decode(&body)
		a.mu.Lock()
		a.seen = append(a.seen, fmt.Sprintf("%s %s%s %s %d", q.URL.Path, q.Header.Get("Authorization"),
			q.Header.Get("X-Api-Key"), body.Model, body.Max+body.Complete))
		a.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.HasSuffix(q.URL.Path, "/messages") {
			_, _ = fmt.Fprint(w,
				"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n"+
					"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"+
					"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"+
					"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"+
					"\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n"+
					"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"+
					"event: message_delta\ndata: "+
					"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"+
					"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
			return
		}
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"}}]}\n\n"+
			"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(a.Close)
	return a
}

// asked returns what was asked since the last call.
func (a *asker) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := strings.Join(a.seen, "\n")
	a.seen = nil
	return all
}

func (p place) atHome(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(p.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask runs one turn and returns what the API was asked, and what was said on standard error.
func (p place) ask(t *testing.T, a *asker, env []string, args ...string) (asked, log string, exit int) {
	t.Helper()
	r := p.launch(t, env, append(args, "-p", "hello")...)
	_, exit = r.end()
	return a.asked(), r.stderr.String(), exit
}

const secretKey = "sk-of-the-profile-1a2b3c4d"

// TestProfiles: the active profile of ~/.eidolon is asked, with its key, its model and its limit, over its API.
func TestProfiles(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	profiles := func(active string) string {
		return fmt.Sprintf(`{"models":{"active":%q,"profiles":[
			{"name":"one","provider":"siliconflow","model":"m-1","apiKey":%q,"baseUrl":"%s/v1"},
			{"name":"two","provider":"minimax","model":"m-2","apiKind":"anthropic","apiKey":"k-2",
			 "baseUrl":"%s/anthropic","maxOutputTokens":1234}]}}`, active, secretKey, a.URL, a.URL)
	}
	one, two := "/v1/chat/completions Bearer "+secretKey+" m-1 20000", "/anthropic/v1/messages k-2 m-2 1234"
	legacy := fmt.Sprintf(`{"model":{"provider":"siliconflow","model":"old","apiKey":"sk","baseUrl":"%s/v1"}}`, a.URL)
	for name, c := range map[string]struct {
		user, project string
		trust         bool
		env, args     []string
		want, says    string
		exit          int
	}{
		"openai":    {user: profiles("one"), want: one},
		"anthropic": {user: profiles("two"), want: two},
		"no such": {
			user: profiles("three"), want: one, says: "names the profile three, which does not exist; the profile one",
		},
		"the key of the environment": {
			user: profiles("one"), env: []string{"SILICONFLOW_API_KEY=k-env"},
			want: "/v1/chat/completions Bearer k-env m-1 20000",
		},
		"other keys do not matter": {
			user: profiles("one"), env: []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"}, want: one,
		},
		"legacy": {user: legacy, want: "/v1/chat/completions Bearer sk old 20000"},
		"a typed model": {
			user: profiles("one"), args: []string{"--model", "other"},
			want: "/v1/chat/completions Bearer " + secretKey + " other 20000",
		},
		"an untrusted project": {
			user: profiles("one"), project: `{"models":{"active":"two"}}`, want: one,
			says: "is not trusted, so its models do not count; look at it, then run: omniagent trust",
		},
		"a trusted project": {user: profiles("one"), project: `{"models":{"active":"two"}}`, trust: true, want: two},
		"a trusted project's address gets no key": {
			user: profiles("one"), trust: true, env: []string{"SILICONFLOW_API_KEY=k-env"},
			project: `{"models":{"profiles":[{"name":"one","model":"theirs","baseUrl":"https://127.1.evil.example/v1"}]}}`,
			says:    "has no key", exit: 1,
		},
		"broken": {
			user: `{"models": [}`, env: []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + a.URL + "/v1"},
			args: []string{"--model", "m"}, want: "/v1/chat/completions Bearer k m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.atHome(t, ".eidolon/config.json", c.user)
			if c.project != "" {
				p.write(t, ".eidolon/config.json", c.project)
			}
			if c.trust {
				p.run(t, "trust", filepath.Join(p.work, ".eidolon", "config.json"))
			}
			got, log, exit := p.ask(t, a, c.env, c.args...)
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || exit != c.exit {
				t.Errorf("exit %d, asked %q, not %q\n%s", exit, got, c.want, log)
			}
			if !strings.Contains(log, c.says) || strings.Contains(log, secretKey) {
				t.Errorf("%q is not in %s", c.says, log)
			}
		})
	}
}

// TestConfiguredModel: native.provider, native.model and native.api_base say which model is asked; a project's address
// gets no key of the user's.
func TestConfiguredModel(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	p := newPlace(t)
	p.run(t, "config", "set", "native.provider", "openai", "--global")
	p.run(t, "config", "set", "native.model", "m-c", "--global")
	p.run(t, "config", "set", "native.api_base", a.URL+"/v1", "--global")
	want := "/v1/chat/completions Bearer k m-c"
	p.asks(t, a, []string{"OPENAI_API_KEY=k", "GEMINI_API_KEY=x"}, want)
	// Another provider has neither that model nor that address.
	p.asks(t, a, []string{
		"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + a.URL, "OMNIAGENT_NATIVE_PROVIDER=anthropic",
	}, "/v1/messages k claude")
	p.run(t, "config", "set", "native.api_base", "https://collector.example/v1") // of the project; it is trusted
	got, log, exit := p.ask(t, a, []string{"OPENAI_API_KEY=k"})
	if got != "" || exit != 1 || !strings.Contains(log, "is not sent to https://collector.example/v1") {
		t.Errorf("exit %d, asked %q\n%s", exit, got, log)
	}
}

// asks runs one turn and checks what the API was asked.
func (p place) asks(t *testing.T, a *asker, env []string, want string, args ...string) {
	t.Helper()
	if got, log, exit := p.ask(t, a, env, args...); !strings.HasPrefix(got, want) || got == "" || exit != 0 {
		t.Errorf("%v: exit %d, asked %q, not %q\n%s", args, exit, got, want, log)
	}
}

// TestResumedModel: a resumed conversation asks where it asked before, whatever else would be chosen now.
func TestResumedModel(t *testing.T) {
	t.Parallel()
	a, other := newAsker(t), newAsker(t)
	p := newPlace(t)
	keys := []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k2"}
	first, second := "/v1/chat/completions Bearer k m", "/v1/chat/completions Bearer k n"
	typed := []string{"--provider", "openai", "--model", "m", "--api-base", a.URL + "/v1"}
	p.asks(t, a, keys, first, append(typed, "--session-id", "s1")...)
	p.asks(t, a, keys, first, "--resume", "s1")
	p.asks(t, a, keys, first, "--continue")
	p.asks(t, a, keys, first, "--session-id", "s1")
	// What is typed is stronger, and stays.
	p.asks(t, other, keys, second, "--resume", "s1", "--api-base", other.URL+"/v1", "--model", "n")
	p.asks(t, other, keys, second, "--resume", "s1")

	// A profile, which is no longer the active one.
	profiles := `{"models":{"active":%q,"profiles":[
		{"name":"one","model":"m-1","apiKey":"k-1","baseUrl":"%s/v1"},
		{"name":"two","model":"m-2","apiKey":"k-2","baseUrl":"%s/v1"}]}}`
	p.atHome(t, ".eidolon.json", fmt.Sprintf(profiles, "one", a.URL, other.URL))
	p.asks(t, a, nil, "/v1/chat/completions Bearer k-1 m-1", "--session-id", "s2")
	p.atHome(t, ".eidolon.json", fmt.Sprintf(profiles, "two", a.URL, other.URL))
	p.asks(t, a, nil, "/v1/chat/completions Bearer k-1 m-1", "--resume", "s2")
	p.asks(t, other, nil, "/v1/chat/completions Bearer k-2 m-2")
	// It is gone: its address gets no other key.
	p.atHome(t, ".eidolon.json", `{}`)
	got, log, exit := p.ask(t, a, []string{"OPENAI_API_KEY=k"}, "--resume", "s2")
	if strings.Contains(got, "Bearer k ") || exit == 2 {
		t.Errorf("exit %d, asked %q\n%s", exit, got, log)
	}
}
