package provider

import (
	"cmp"
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
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

const (
	googleScope = "https://www.googleapis.com/auth/cloud-platform " +
		"https://www.googleapis.com/auth/generative-language"
	googleTokenURI = "https://oauth2.googleapis.com/token"
	tokenTakes     = 30 * time.Second
	gcloudLasts    = 5 * time.Minute // not reported, but gcloud's tokens never expire sooner
	maxCredentials = 1 << 20
)

// google is a login that returns tokens. They live for up to an hour, and are kept in memory only.
type google struct {
	gcloud  string // the program, or ""
	away    process.Programs
	file    string // the file of credentials, or ""
	project string
	http    *http.Client

	mu    sync.Mutex
	token string
	until time.Time
}

// bearer returns a valid token. It tries gcloud, then the file, and stays with the first that works.
func (g *google) bearer(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTakes)
	defer cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token != "" && time.Now().Before(g.until) {
		return g.token, nil
	}
	var failed []error
	for _, way := range []func(context.Context) (string, time.Duration, error){g.fromGcloud, g.fromFile} {
		token, lasts, err := way(ctx)
		if err == nil && token != "" {
			g.token, g.until = token, time.Now().Add(lasts)
			return token, nil
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	trouble, cause := model.NoLogin, errors.Join(failed...)
	if errors.Is(cause, fault.CredentialsExpired) {
		trouble = model.Expired
	}
	return "", &model.Error{
		Trouble: trouble, Cause: cause, Message: "no login of Google gave a token: " + joined(failed),
		Next: "set GEMINI_API_KEY, or run gcloud auth login",
	}
}

func joined(all []error) string {
	var words []string
	for _, err := range all {
		words = append(words, err.Error())
	}
	return strings.Join(words, "; ")
}

func (g *google) fromGcloud(ctx context.Context) (string, time.Duration, error) {
	if g.gcloud == "" {
		return "", 0, nil
	}
	r, err := g.away.Run(ctx, process.Spec{
		Argv: []string{g.gcloud, "auth", "print-access-token"}, MaxOutput: 64 << 10, Grace: time.Second,
	})
	token := strings.TrimSpace(string(r.Stdout))
	switch {
	case err != nil:
		return "", 0, fault.New(fault.AuthRequired, "cannot run gcloud").Because(err)
	case r.ExitCode != 0 || token == "" || usable(token, "gcloud") != nil:
		return "", 0, errors.New("gcloud has no login") // do not quote its output, which may contain a token
	}
	return token, gcloudLasts, nil
}

// credentials is a file of application default credentials.
type credentials struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	QuotaProject string `json:"quota_project_id"`
}

func (g *google) fromFile(ctx context.Context) (string, time.Duration, error) {
	if g.file == "" {
		return "", 0, nil
	}
	data, err := workspace.ReadFile(g.file, maxCredentials)
	if err != nil {
		return "", 0, err
	}
	var c credentials
	if json.Unmarshal(data, &c) != nil { // do not use its error, which may quote the file
		return "", 0, fault.New(fault.AuthRequired, "%s is not a credentials file", g.file)
	}
	form := url.Values{}
	switch c.Type {
	case "service_account":
		assertion, err := c.assertion(time.Now())
		if err != nil {
			return "", 0, fault.New(fault.AuthRequired, "the key in %s cannot be used", g.file).Because(err)
		}
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		form.Set("assertion", assertion)
	case "authorized_user":
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", c.RefreshToken)
		form.Set("client_id", c.ClientID)
		form.Set("client_secret", c.ClientSecret)
		if g.project == "" && usable(c.QuotaProject, "quota_project_id") == nil {
			g.project = c.QuotaProject
		}
	default:
		return "", 0, fault.New(fault.AuthRequired, "%s has credentials of type %q, which only gcloud can use",
			g.file, c.Type).
			Hint("Run: gcloud auth login")
	}
	return g.exchange(ctx, c.tokenURI(), form)
}

func (c credentials) tokenURI() string {
	return cmp.Or(c.TokenURI, googleTokenURI)
}

// assertion returns a signed statement that we are the service account.
func (c credentials) assertion(now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(c.PrivateKey))
	if block == nil {
		return "", errors.New("it has no private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return "", errors.New("its private key is not an RSA key")
	}
	part := func(v any) string {
		data, _ := json.Marshal(v) // strings and numbers always encode
		return base64.RawURLEncoding.EncodeToString(data)
	}
	header := map[string]string{"alg": "RS256", "typ": "JWT"}
	if c.PrivateKeyID != "" {
		header["kid"] = c.PrivateKeyID
	}
	signed := part(header) + "." + part(map[string]any{
		"iss": c.ClientEmail, "scope": googleScope, "aud": c.tokenURI(), "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix(),
	})
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// exchange exchanges a proof for a token. It requires https, although the address comes from the same file as the
// proof.
func (g *google) exchange(ctx context.Context, address string, form url.Values) (string, time.Duration, error) {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || !loopbackURL(address)) {
		return "", 0, fault.New(fault.AuthRequired, "the token_uri in %s is not an https address", g.file)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if g.http != nil {
		client.Transport = g.http.Transport
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, fault.New(fault.ServiceDown, "%s cannot be reached", request.URL.Host).Because(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxCredentials))
	var answer struct {
		Token   string `json:"access_token"`
		Lasts   int64  `json:"expires_in"`
		Error   string `json:"error"`
		Because string `json:"error_description"`
	}
	switch {
	case err != nil:
		return "", 0, fault.New(fault.ServiceDown, "the connection to %s broke", request.URL.Host).Because(err)
	case json.Unmarshal(body, &answer) != nil || answer.Token == "" && answer.Error == "":
		return "", 0, fault.New(fault.AuthRequired, "%s answered with HTTP %d and no token", request.URL.Host,
			response.StatusCode)
	case answer.Token == "" || response.StatusCode != http.StatusOK || usable(answer.Token, "the token") != nil:
		code := fault.AuthRequired
		if answer.Error == "invalid_grant" { // the login has expired or was revoked
			code = fault.CredentialsExpired
		}
		return "", 0, fault.New(code, "%s refuses the credentials in %s: %s", request.URL.Host, g.file,
			text.OneLine(answer.Error+" "+answer.Because, 300)).
			FixBy("Log in to Google again.", "gcloud auth application-default login")
	}
	lasts := time.Duration(answer.Lasts)*time.Second - time.Minute
	return answer.Token, min(max(lasts, 0), time.Hour), nil
}

// charged returns the project to charge, which Google requires for a person's login.
func (g *google) charged() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.project
}
