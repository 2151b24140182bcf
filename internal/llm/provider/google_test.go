package provider

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// tokens is a server that gives a token for each request that check accepts, and counts them.
func tokens(t *testing.T, check func(*http.Request) bool) (address string, count *int) {
	t.Helper()
	count = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		*count++
		if q.ParseForm() != nil || !check(q) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"Token has been \u001b[31mexpired"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3599,"token_type":"Bearer"}`, *count)
	}))
	t.Cleanup(s.Close)
	return s.URL, count
}

// login chooses Gemini with that file of credentials.
func login(t *testing.T, path string, content map[string]string) Choice {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials.json")
	data, _ := json.Marshal(content)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Choose(Options{Provider: Gemini, Lookup: env("GOOGLE_APPLICATION_CREDENTIALS="+file, "PATH="+path)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServiceAccount(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	var address string
	address, count := tokens(t, func(q *http.Request) bool {
		parts := strings.Split(q.PostForm.Get("assertion"), ".")
		if len(parts) != 3 || q.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			return false
		}
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		header, _ := base64.RawURLEncoding.DecodeString(parts[0])
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		var of struct {
			Iss, Aud, Scope string
			Iat, Exp        int64
		}
		return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) == nil &&
			json.Unmarshal(claims, &of) == nil &&
			of.Iss == "me@example" && of.Aud == "http://"+q.Host+"/token" && of.Exp == of.Iat+3600 &&
			strings.Contains(of.Scope, "cloud-platform") &&
			strings.Contains(string(header), `"kid":"k1"`) && strings.Contains(string(header), `"alg":"RS256"`)
	})
	c := login(t, "", map[string]string{
		"type": "service_account", "client_email": "me@example", "private_key_id": "k1", "token_uri": address +
			"/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if c.Login != "the credentials in GOOGLE_APPLICATION_CREDENTIALS" || *count != 0 {
		t.Errorf("%s, asked %d times before anybody wanted a token", c.Login, *count)
	}
	for range 3 {
		token, err := c.bearer()(t.Context())
		if err != nil || token != "token-1" {
			t.Fatalf("got %q, %v", token, err)
		}
	}
	if *count != 1 {
		t.Errorf("%d tokens were asked for", *count)
	}
}

func TestAuthorizedUser(t *testing.T) {
	t.Parallel()
	address, _ := tokens(t, func(q *http.Request) bool {
		f := q.PostForm
		return f.Get("grant_type") == "refresh_token" && f.Get("refresh_token") == canary &&
			f.Get("client_id") == "id" && f.Get("client_secret") == "s"
	})
	file := map[string]string{
		"type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": canary,
		"quota_project_id": "payer", "token_uri": address,
	}
	c := login(t, "", file)
	if token, err := c.bearer()(t.Context()); err != nil || token != "token-1" {
		t.Fatalf("got %q, %v", token, err)
	}

	// The project is told with each request, and the query of an address comes behind the path.
	seen := make(chan *http.Request, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { seen <- q }))
	defer api.Close()
	c.Endpoint.URL = api.URL + "/base?a=1"
	base, client := c.connection()
	if _, err := client.Get(base + "/path?alt=sse"); err != nil {
		t.Fatal(err)
	}
	q := <-seen
	if q.URL.String() != "/base/path?a=1&alt=sse" || q.Header.Get("X-Goog-User-Project") != "payer" {
		t.Errorf("got %s, project %q", q.URL, q.Header.Get("X-Goog-User-Project"))
	}

	file["refresh_token"] = "old"
	_, err := login(t, "", file).bearer()(t.Context())
	var trouble *model.Error
	if !errors.As(err, &trouble) || trouble.Trouble != model.Expired || !strings.Contains(trouble.Message, "expired") ||
		strings.Contains(trouble.Message, "\x1b") {
		t.Errorf("an old token: %v", err)
	}
}

func TestGcloud(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	good := executable(t, "gcloud", "echo \"$@\" >>"+log+"\necho ya29."+canary+"\n")
	out := executable(t, "gcloud", "echo "+canary+"\necho 'You do not have an active account' >&2\nexit 1\n")

	// A key works without gcloud being started.
	c, err := Choose(Options{Lookup: env("GEMINI_API_KEY=k", "PATH="+good)})
	if err != nil || c.bearer() != nil || c.credential.key.reveal() != "k" {
		t.Errorf("a key: %+v, %v", c, err)
	}
	c, err = Choose(Options{Provider: Gemini, Lookup: env("PATH=relative:" + good)})
	if err != nil || c.Login != "a login of gcloud, if it has one" || !c.Unsure {
		t.Fatalf("got %q, %v", c.Login, err)
	}
	kept := t.TempDir()
	if err := os.WriteFile(filepath.Join(kept, "credentials.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := Choose(Options{Provider: Gemini, Lookup: env("PATH="+good, "CLOUDSDK_CONFIG="+kept)})
	if err != nil || known.Login != "the login of gcloud" || known.Unsure {
		t.Errorf("got %q, %v", known.Login, err)
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("gcloud was started before anybody wanted a token")
	}
	for range 2 {
		if token, err := c.bearer()(t.Context()); err != nil || token != "ya29."+canary {
			t.Errorf("got %q, %v", token, err)
		}
	}
	if data, _ := os.ReadFile(log); string(data) != "auth print-access-token\n" {
		t.Errorf("gcloud was started with %q", data)
	}

	// Without a login there the file is next; without a file the error says both ways, and not what gcloud printed.
	address, _ := tokens(t, func(*http.Request) bool { return true })
	c = login(t, out, map[string]string{"type": "authorized_user", "token_uri": address})
	if token, err := c.bearer()(t.Context()); err != nil || token != "token-1" {
		t.Errorf("after gcloud: got %q, %v", token, err)
	}
	if c, err = Choose(Options{Provider: Gemini, Lookup: env("PATH=" + out)}); err != nil {
		t.Fatal(err)
	}
	_, err = c.bearer()(t.Context())
	var said *model.Error
	if !errors.As(err, &said) || !strings.Contains(said.Next, "GEMINI_API_KEY") ||
		strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
}

func TestGcloudHasAClock(t *testing.T) {
	t.Parallel()
	dir := executable(t, "gcloud", "exec sleep 600\n")
	c, err := Choose(Options{Provider: Gemini, Lookup: env("PATH=" + dir)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = c.bearer()(ctx); err == nil {
		t.Error("a token of a gcloud that hangs")
	}
}

func TestCredentialsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]map[string]string{
		"external_account": {"type": "external_account"},
		"key":              {"type": "service_account", "private_key": canary},
		"http": {
			"type": "authorized_user", "refresh_token": canary,
			"token_uri": "http://example.com/token",
		},
		"nothing": {},
	} {
		_, err := login(t, "", content).bearer()(t.Context())
		var trouble *model.Error
		if !errors.As(err, &trouble) || trouble.Trouble != model.NoLogin || strings.Contains(err.Error(), canary) ||
			name == "http" && !strings.Contains(err.Error(), "not an https address") {
			t.Errorf("%s: %v", name, err)
		}
	}
	home := t.TempDir()
	path := filepath.Join(home, ".config", "gcloud", "application_default_credentials.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Choose(Options{Provider: Gemini, Home: home, Lookup: env()})
	if err != nil || c.Login != "the application default credentials" {
		t.Fatalf("got %+v, %v", c, err)
	}
	if _, err = c.bearer()(t.Context()); err == nil || !strings.Contains(err.Error(), path) ||
		strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
}
