//go:build unix

package evaluation

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// What comes with talking to a model API: §31, §45 and §53. The APIs and the proxy are servers of the check, on this
// machine.

// server is one that refuses everything with a status, and keeps what it was asked.
type server struct {
	*httptest.Server

	mu    sync.Mutex
	asked []*http.Request
}

func refusing(status int, body string) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, q)
		s.mu.Unlock()
		http.Error(w, body, status)
	}))
	return s
}

func (s *server) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func proxies(p *probe) {
	proxy := refusing(http.StatusForbidden, "not through here")
	defer proxy.Close()
	address, secret := strings.TrimPrefix(proxy.URL, "http://"), madeUpSecret()
	ask := []string{
		"start", "--provider", "openai", "--model", "m", "--api-base", "https://model.invalid/v1", "-p",
		"hi",
	}
	env := []string{"OPENAI_API_KEY=" + secret + "k", "HTTPS_PROXY=http://ann:" + secret + "@" + address}
	through := p.do(call{args: ask, env: env, secret: true, limit: 8 * time.Second}) // it tries more than once
	seen := proxy.requests()
	p.need(1, len(seen) > 0 && seen[0].Method == http.MethodConnect && seen[0].Host == "model.invalid:443",
		"a connection goes through HTTPS_PROXY")
	p.need(2, len(seen) > 0 && strings.HasPrefix(seen[0].Header.Get("Proxy-Authorization"), "Basic "),
		"with the name and the password that the variable has")
	p.need(2, through.exit == 1 && !strings.Contains(through.out+through.err, secret), "which neither stream shows")
	here := refusing(http.StatusUnauthorized, "no")
	defer here.Close()
	around := p.do(call{args: []string{
		"start", "--provider", "openai", "--model", "m", "--api-base", here.URL, "-p",
		"hi",
	}, env: append(env, "HTTP_PROXY=http://"+address), secret: true})
	p.need(2, around.exit == 1 && len(here.requests()) > 0 && len(proxy.requests()) == len(seen),
		"a server on this machine is asked without it")
	p.need(3, through.exit == 1 && strings.Contains(through.out, address), "a failure names the proxy that was used")
	p.need(3, p.extensions()["start"].yes("has_network_io") && p.extensions()["chat"].yes("has_network_io"),
		"the schema says which commands connect")
	p.note("REQUESTS_CA_BUNDLE and NO_PROXY are not tried: that needs a server beyond this machine")
}

func headlessAuthentication(p *probe) {
	ask := []string{"start", "-p", "hi"}
	none, quick := p.quick(ask...)
	p.need(1, quick && none.exit > 0, "without a credential, a command that needs one ends within 1 s")
	p.need(2, none.refusedInStream(1, "key") && strings.Contains(none.err, "OPENAI_API_KEY") &&
		strings.Contains(none.err, "ANTHROPIC_API_KEY"), "its error names the variables that it reads, without a prompt")
	api := refusing(http.StatusNotFound, "no")
	defer api.Close()
	key := madeUpSecret()
	p.do(call{
		args: []string{"start", "--provider", "openai", "--model", "m", "--api-base", api.URL, "-p", "hi"},
		env:  []string{"OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + api.URL}, secret: true,
	})
	asked := api.requests()
	p.need(2, len(asked) > 0 && asked[0].Header.Get("Authorization") == "Bearer "+key,
		"it accepts a key from the environment")
	x := p.extensions()["start"]
	p.need(3, x.yes("requires_auth") && len(x.list("token_env_vars")) > 0,
		"requires_auth and token_env_vars in the schema")
	p.note("claude, codex, gemini, copilot and opencode use their own logins")
}

func expiry(p *probe) {
	api := refusing(http.StatusUnauthorized, `{"error":{"message":"the token has expired","code":"token_expired"}}`)
	defer api.Close()
	r := p.do(call{
		args: []string{"start", "--provider", "openai", "--model", "m", "--api-base", api.URL, "-p", "hi"},
		env:  []string{"OPENAI_API_KEY=" + madeUpSecret()}, secret: true,
	})
	list := lines(r.out)
	last := value{}
	if len(list) > 1 {
		last = list[len(list)-2]
	}
	p.need(1, r.exit == 1 && len(api.requests()) == 1,
		"a credential that is refused ends the call, and is not tried again")
	p.need(2, last.str("type") == "result" && last.yes("is_error") &&
		strings.Contains(last.str("result"), "the token has expired") &&
		strings.Contains(last.str("result"), "401"), "the result says what the API said, and its status")
	code := slices.ContainsFunc(list, func(v value) bool { return v.str("code") == "CREDENTIALS_EXPIRED" })
	p.need(3, code && strings.Contains(r.err, "hint: "), "CREDENTIALS_EXPIRED, and how to get another")
}
