package modelserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// silence waits for a stream to say nothing more, and returns what came before.
func silence(t *testing.T, url, text string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	timer := time.AfterFunc(300*time.Millisecond, cancel)
	defer timer.Stop()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("the connection did not stay: %v", err)
		}
		return "no headers"
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil || ctx.Err() == nil {
		t.Errorf("the answer ended: %v %s", err, got)
	}
	return string(got)
}

func TestStalls(t *testing.T) {
	for _, w := range wires() {
		for _, stream := range []bool{true, false} {
			for place, begins := range map[string]string{"headers": "no headers", "start": "", "middle": "half"} {
				t.Run(fmt.Sprint(w, stream, place), func(t *testing.T) {
					t.Parallel()
					path, text := body(w, stream)
					const say = `[{"say":"some words that are long enough to have a middle"`
					_, whole, err := post(t, start(t, script(t, say+`}]`), fixed()).URL()+path, text)
					if err != nil {
						t.Fatal(err)
					}
					s := start(t, script(t, say+`,"stall":"`+place+`"}]`), fixed())
					got := silence(t, s.URL()+path, text)
					half := len(got) > len(whole)/4 && len(got) < len(whole)*3/4 && bytes.HasPrefix(whole, []byte(got))
					if begins == "half" && !half || begins != "half" && got != begins {
						t.Errorf("%q came of %q", got, whole)
					}
				})
			}
		}
	}
}

func TestCuts(t *testing.T) {
	for _, w := range wires() {
		path, text := body(w, true)
		_, whole, err := post(t, start(t, script(t, `[{"say":"some words that are long enough to have a middle"}]`),
			fixed()).URL()+path, text)
		if err != nil {
			t.Fatal(err)
		}
		for cut, size := range map[string]func(int) bool{
			`"headers"`:    nil,
			`"start"`:      func(n int) bool { return n == 0 },
			`"middle"`:     func(n int) bool { return n > len(whole)/10 && n < len(whole) },
			`{"bytes":37}`: func(n int) bool { return n == 37 },
			`{"events":2}`: func(n int) bool {
				return n > 0 && n < len(whole) &&
					bytes.Count(whole[:n], []byte("data: ")) == 2
			},
		} {
			s := start(t, script(t, `[{"say":"some words that are long enough to have a middle","cut":`+cut+`}]`),
				fixed())
			resp, got, err := post(t, s.URL()+path, text)
			switch {
			case err == nil:
				t.Errorf("%s %s: the client saw no cut in %s", w, cut, got)
			case size == nil && resp != nil:
				t.Errorf("%s %s: there were headers", w, cut)
			case size != nil && !size(len(got)):
				t.Errorf("%s %s: %d bytes came", w, cut, len(got))
			case size != nil && !bytes.HasPrefix(whole, got):
				t.Errorf("%s %s: %s is not how the answer begins", w, cut, got)
			}
		}
	}
}

func TestAttemptsAreCountedByPlace(t *testing.T) {
	s := start(t, script(t, `[{"error":500,"times":2},{"cut":"start","times":1},{"say":"at last"}]`), Options{})
	path, text := body(Messages, false)
	for i, want := range []int{500, 500, 0, 200, 200} {
		resp, got, err := post(t, s.URL()+path, text)
		switch {
		case want == 0:
			if err == nil {
				t.Errorf("attempt %d was not cut: %s", i, got)
			}
		case err != nil || resp.StatusCode != want:
			t.Errorf("attempt %d: %v %v, not %d", i, resp, err, want)
		}
	}
	resp, _, err := post(t, s.URL()+path, strings.Replace(text, "hello there", "another conversation", 1))
	if err != nil || resp.StatusCode != 500 {
		t.Errorf("another conversation begins with its own first attempt: %v %v", resp, err)
	}
}

func TestSlow(t *testing.T) {
	s := start(t, script(t, `[{"say":"one two three four five six seven eight nine","slow":"20ms"}]`), Options{})
	path, text := body(Chat, true)
	began := time.Now()
	_, _, err := post(t, s.URL()+path, text)
	if took := time.Since(began); err != nil || took < 60*time.Millisecond {
		t.Errorf("%v in %s", err, took)
	}
}

// TestPaces: the first byte, what follows the first piece, each piece and each byte come as late as the script says.
func TestPaces(t *testing.T) {
	const steps = `"steps":[{"say":"one two three four five six seven eight nine"}]}`
	for pace, least := range map[string][2]time.Duration{ // until the first byte, and to the end
		`{"first":"60ms"}`: {60 * time.Millisecond, 0}, `{"after":"60ms"}`: {0, 60 * time.Millisecond},
		`{"piece":"20ms"}`: {0, 40 * time.Millisecond}, `{"byte":"100us"}`: {0, 60 * time.Millisecond},
	} {
		for _, wire := range []Wire{Messages, Responses, Chat, Gemini} {
			s := start(t, script(t, `{"slow":`+pace+`,`+steps), Options{})
			path, text := body(wire, true)
			began := time.Now()
			response, err := http.Post(s.URL()+path, "application/json", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			first := time.Since(began)
			data, err := io.ReadAll(response.Body)
			all := time.Since(began) // from the first byte on it may be less: that is read later than it came
			_ = response.Body.Close()
			if err != nil || first < least[0] || all < least[1] || !strings.Contains(string(data), "nine") {
				t.Errorf("%s %s: %v, %v and %v: %s", pace, wire, err, first, all, data)
			}
		}
	}
}

// TestRepeat: a text that is repeated is as many events.
func TestRepeat(t *testing.T) {
	s := start(t, script(t, `[{"say":"abc","repeat":1000}]`), Options{})
	path, text := body(Messages, true)
	_, data, err := post(t, s.URL()+path, text)
	if n := strings.Count(string(data), `"text":"abc"`); err != nil || n != 1000 {
		t.Errorf("%d pieces, %v", n, err)
	}
}

func TestWhoIsRefused(t *testing.T) {
	s := start(t, &Script{}, Options{Key: "right"})
	path, text := body(Messages, false)
	for name, c := range map[string]struct {
		status int
		change func(*http.Request)
	}{
		"x-api-key": {200, func(q *http.Request) { q.Header.Set("X-Api-Key", "right") }},
		"bearer":    {200, func(q *http.Request) { q.Header.Set("Authorization", "Bearer right") }},
		"goog":      {200, func(q *http.Request) { q.Header.Set("X-Goog-Api-Key", "right") }},
		"query":     {200, func(q *http.Request) { q.URL.RawQuery = "key=right" }},
		"localhost": {200, func(q *http.Request) { q.Header.Set("X-Api-Key", "right"); q.Host = "localhost:1" }},
		"v6":        {200, func(q *http.Request) { q.Header.Set("X-Api-Key", "right"); q.Host = "[::1]:80" }},
		"none":      {401, func(*http.Request) {}},
		"wrong":     {401, func(q *http.Request) { q.Header.Set("X-Api-Key", "righ") }},
		"host":      {403, func(q *http.Request) { q.Header.Set("X-Api-Key", "right"); q.Host = "evil.example" }},
		"look-alike": {403, func(q *http.Request) {
			q.Header.Set("X-Api-Key", "right")
			q.Host = "127.0.0.1.evil.example"
		}},
		"origin": {403, func(q *http.Request) {
			q.Header.Set("X-Api-Key", "right")
			q.Header.Set("Origin", "http://localhost")
		}},
		"encoding": {415, func(q *http.Request) {
			q.Header.Set("X-Api-Key", "right")
			q.Header.Set("Content-Encoding", "zstd")
		}},
		"not gzip": {400, func(q *http.Request) {
			q.Header.Set("X-Api-Key", "right")
			q.Header.Set("Content-Encoding", "gzip")
		}},
		"unknown path": {404, func(q *http.Request) {
			q.Header.Set("X-Api-Key", "right")
			q.URL.Path = "/v1/embeddings"
		}},
		"unknown paths": {404, func(q *http.Request) {
			q.Header.Set("X-Api-Key", "right")
			q.URL.Path = "/v1beta/models/m:embedContent"
		}},
		"get": {404, func(q *http.Request) { q.Header.Set("X-Api-Key", "right"); q.Method = http.MethodGet }},
	} {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(text))
		c.change(q)
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d, not %d: %s", name, resp.StatusCode, c.status, got)
		}
		var e struct{ Error struct{ Message string } }
		if c.status != 200 && (json.Unmarshal(got, &e) != nil || e.Error.Message == "") {
			t.Errorf("%s: no message in %s", name, got)
		}
		if c.status == 404 && !strings.Contains(e.Error.Message, q.URL.Path) {
			t.Errorf("%s: %s does not name the path", name, e.Error.Message)
		}
	}
	if n := len(s.Requests()); n != 6 {
		t.Errorf("%d requests are kept, not the 6 that were answered", n)
	}
}

func TestGarbageIsRefusedInTheShapeOfTheWire(t *testing.T) {
	s := start(t, &Script{}, Options{})
	for _, w := range wires() {
		path, _ := body(w, true)
		for _, text := range []string{
			"", "{", "[]", `"x"`, "\x00\xff", `{"messages":3,"input":3,"contents":3}`,
			`{"tools":7}`,
		} {
			resp, got, err := post(t, s.URL()+path, text)
			if err != nil || resp.StatusCode != 400 {
				t.Errorf("%s %q: %v %v", w, text, resp, err)
			}
			var e struct {
				Error struct{ Message, Type, Status string }
			}
			if json.Unmarshal(got, &e) != nil || e.Error.Type != "invalid_request_error" &&
				e.Error.Status != "INVALID_ARGUMENT" {
				t.Errorf("%s %q: %s", w, text, got)
			}
		}
	}
}

func TestLargeBodies(t *testing.T) {
	s := start(t, &Script{}, Options{})
	path, text := body(Messages, false)
	for size, status := range map[int]int{4 << 20: 200, 64 << 20: 413} {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		_, _ = io.WriteString(z, strings.Replace(text, "hello there", strings.Repeat("x", size), 1))
		_ = z.Close()
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, &packed)
		q.Header.Set("Content-Encoding", "gzip")
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%d bytes: %d, not %d", size, resp.StatusCode, status)
		}
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s := &Server{}
	for range maxKept + 50 {
		s.keep(&Request{Raw: make(JSON, 1<<20)})
	}
	kept := s.Requests()
	sum := 0
	for _, r := range kept {
		sum += len(r.Raw)
	}
	if len(kept) != maxKept || sum > maxBytes || sum != s.bytes || kept[maxKept-1].Number != maxKept+50 ||
		len(kept[maxKept-1].Raw) == 0 {
		t.Errorf("%d requests with %d bytes (%d counted), the last is number %d", len(kept), sum, s.bytes,
			kept[len(kept)-1].Number)
	}
}

func TestPathsAndLists(t *testing.T) {
	s := start(t, &Script{}, Options{})
	for path, want := range map[string]string{
		"/v1/v1/messages":          `"text":"ok"`,
		"/api/v1/chat/completions": `"content":"ok"`,
		"/responses":               `"text":"ok"`,
		"/v1beta/v1beta/models/a%2Fb:generateContent":     `"modelVersion":"a/b"`,
		"/v1/models/m:generateContent":                    `"text":"ok"`,
		"/v1/messages/count_tokens":                       `{"input_tokens":1}`,
		"/v1beta/models/gemini-3.8-flash:countTokens?x=y": `{"totalTokens":1}`,
	} {
		resp, got, err := post(t, s.URL()+path, "{}")
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(got), want) {
			t.Errorf("%s: %v %s", path, err, got)
		}
	}
	for path, want := range map[string]string{
		"/v1/models": `"object":"list"`, "/v1beta/models": `"models":[{"name":"models/`, "/v1/models/x": `{"id":"x"`,
		"/v1beta/models/x": `"models/x"`,
	} {
		resp, err := http.Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestABackendThatFails(t *testing.T) {
	s := start(t, backend(func(_ context.Context, r *Request, _ Writer) error {
		if r.Stream {
			panic("oh")
		}
		return io.ErrUnexpectedEOF
	}), Options{})
	for _, stream := range []bool{true, false} {
		path, text := body(Messages, stream)
		resp, got, err := post(t, s.URL()+path, text)
		if err != nil || resp.StatusCode != 500 || !strings.Contains(string(got), "api_error") {
			t.Errorf("%v %v %s", resp, err, got)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	s := start(t, script(t, `[{"say":"you said ${input}"}]`), Options{})
	var all sync.WaitGroup
	const n = 40
	for i := range n {
		all.Go(func() {
			w := wires()[i%4]
			path, text := body(w, i%3 == 0)
			resp, got, err := post(t, s.URL()+path, text)
			if err != nil || resp.StatusCode != 200 || !strings.Contains(string(got), "hello") {
				t.Errorf("%s: %v %s", w, err, got)
			}
		})
	}
	all.Wait()
	seen := map[int]bool{}
	for _, r := range s.Requests() {
		seen[r.Number] = true
	}
	if len(seen) != n || len(s.Requests()) != n {
		t.Errorf("%d numbers, %d requests", len(seen), len(s.Requests()))
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	s := start(t, script(t, `[{"say":"x","stall":"start"}]`), Options{})
	path, text := body(Messages, true)
	began := make(chan error, 5)
	var all sync.WaitGroup
	for range cap(began) {
		all.Go(func() {
			resp, err := http.Post(s.URL()+path, "application/json", strings.NewReader(text))
			began <- err
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	for range cap(began) {
		if err := <-began; err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() { _ = s.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(hermetic.Patience):
		t.Fatal("Close waits for those that stall")
	}
	for _, leaked := range []string{"modelserver.(*Server).serve", "modelserver.(*answer)", "modelserver.Start.func"} {
		stacks := make([]byte, 1<<20)
		// A handler that drops its connection says so just before its last frame is gone.
		for began := time.Now(); ; runtime.Gosched() {
			running := stacks[:runtime.Stack(stacks, true)]
			if !bytes.Contains(running, []byte(leaked)) {
				break
			}
			if time.Since(began) > hermetic.Patience {
				t.Fatalf("%s still runs:\n%s", leaked, running)
			}
		}
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
