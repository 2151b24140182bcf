package start

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

const spoken = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

func speak(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, spoken)
}

// TestProxy: requests take the proxy that the environment names, but for hosts that it leaves out.
func TestProxy(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.String() != "http://model.invalid/v1/chat/completions" {
			t.Errorf("the proxy is asked for %s", q.URL)
		}
		asked.Add(1)
		speak(w)
	}))
	t.Cleanup(proxy.Close)
	args := []string{"--provider", "openai", "--model", "m", "--api-base", "http://model.invalid/v1", "-p", "go"}
	env := []string{"OPENAI_API_KEY=k", "HTTP_PROXY=" + proxy.URL}
	if _, exit := p.launch(t, env, args...).end(); exit != 0 || asked.Load() != 1 {
		t.Errorf("exit %d, %d requests", exit, asked.Load())
	}
	if _, exit := p.launch(t, append(env, "NO_PROXY=model.invalid"), args...).end(); exit != 1 || asked.Load() != 1 {
		t.Errorf("exit %d, %d requests", exit, asked.Load())
	}
	// The flags come before the environment.
	none := []string{"OPENAI_API_KEY=k", "HTTP_PROXY=http://127.0.0.1:1"}
	if _, exit := p.launch(t, none, append(args, "--proxy", proxy.URL)...).end(); exit != 0 || asked.Load() != 2 {
		t.Errorf("--proxy: exit %d, %d requests", exit, asked.Load())
	}
	if _, exit := p.launch(t, env, append(args, "--no-proxy")...).end(); exit != 1 || asked.Load() != 2 {
		t.Errorf("--no-proxy: exit %d, %d requests", exit, asked.Load())
	}
}

// TestRetries: a request that fails is repeated as often as the flag says, and each time is told.
func TestRetries(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	args := []string{"--provider", "openai", "--model", "m", "--api-base", server.URL + "/v1", "-p", "go"}
	for retries, want := range []int32{1, 2, 3, 4} {
		asked.Store(0)
		lines, exit := p.launch(t, []string{"OPENAI_API_KEY=k"},
			append(args, "--dialect", "claude", "--output-format", "stream-json", "--retries", strconv.Itoa(retries),
				"--retry-delay", "1ms")...).end()
		told := 0
		for _, l := range lines {
			if l["subtype"] == "api_retry" {
				told++
			}
		}
		if exit != 1 || asked.Load() != want || told != retries {
			t.Errorf("--retries %d: exit %d, %d requests, %d told", retries, exit, asked.Load(), told)
		}
	}
}

// TestCertificates: a server is trusted if the bundle that the environment names vouches for it, and only then.
func TestCertificates(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the other systems have no variable for a bundle")
	}
	p := newPlace(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { speak(w) }))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	bundle := filepath.Join(p.home, "bundle.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, data, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--provider", "openai", "--model", "m", "--api-base", server.URL + "/v1", "-p", "go"}
	if _, exit := p.launch(t, []string{"OPENAI_API_KEY=k", "SSL_CERT_FILE=" + bundle}, args...).end(); exit != 0 {
		t.Errorf("exit %d with the bundle", exit)
	}
	if _, exit := p.launch(t, []string{"OPENAI_API_KEY=k"}, args...).end(); exit != 1 {
		t.Errorf("exit %d without the bundle", exit)
	}
}
