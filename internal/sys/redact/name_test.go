package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	secret := []string{
		"token", "secret", "secrets", "password", "passwd", "pass", "passphrase", "credential", "credentials", "auth",
		"authorization", "cookie", "cookies", "Set-Cookie", "apikey", "api_key", "api-key", "apiKey", "APIKey",
		"API_KEY", "api.key",
		"x-api-key", "X-Api-Key", "private_key", "access_key", "secret_key", "signing_key", "encryption_key", "ssh_key",
		"client_key",
		"license_key", "auth_key", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY", "GH_TOKEN",
		"STRIPE_KEY", "DB_PASS",
		"API_FOO", "AUTH_FOO", "authToken", "auth_token", "authtoken", "accessToken", "access_tokens", "refreshToken",
		"clientSecret",
		"clientsecret", "PGPASSWORD", "MYSQL_PWD", "OAuth", "oauth", "oauth2_token", "token2", "API_KEY_2",
		"session_token",
		"privateKey", "privatekey", "db.password", "--api-key", "Proxy-Authorization", "providers.openai.api_key",
		"apikeys", "api_keys",
	}
	open := []string{
		"idempotency_key", "key", "keys", "keep", "token_limit", "token_count", "token_offset", "tokenizer",
		"token_env_var", "token_env_vars", "max_tokens", "input_tokens", "output_tokens", "tokens", "auth_methods",
		"requires_auth",
		"author", "authored", "secret_env_vars", "key_name", "keyboard", "primary_key", "token-from-env",
		"api-key-from-file",
		"--password-from-env", "authenticated", "missing_keys", "public_key", "publickey", "publicKey", "unmask",
		"authority",
		"total_tokens", "cache_read_input_tokens", "maxOutputTokens", "next_page_token", "pageToken", "token_type",
		"expires_in",
		"api_version", "api_url", "api_error_status", "duration_api_ms", "PWD", "OLDPWD", "PATH", "HOME", "monkey",
		"bypass", "compass",
		"password_file", "has_token", "", "a", "-", "___", "passed", "cookie_file", "reauth_command", "secretary",
		"missing_api_key",
	}
	for _, name := range secret {
		if !Name(name) {
			t.Errorf("%q is not secret", name)
		}
	}
	for _, name := range open {
		if Name(name) {
			t.Errorf("%q is secret", name)
		}
	}
}

// Neither case nor the style of separation decides.
func TestNameIsInsensitiveToStyle(t *testing.T) {
	vocabulary := strings.Fields(`token tokens secret password pass credential auth cookie apikey key keys api private access
		client ssh idempotency primary public max input output count limit env var vars from file name methods requires has missing
		author keyboard github user x o id page next line`)
	random := rand.New(rand.NewPCG(1, 2))
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	for range 20000 {
		words := make([]string, 1+random.IntN(4))
		for i := range words {
			words[i] = vocabulary[random.IntN(len(vocabulary))]
		}
		snake := strings.Join(words, "_")
		want := Name(snake)
		camel, pascal, train := words[0], title(words[0]), title(words[0])
		for _, w := range words[1:] {
			camel, pascal, train = camel+title(w), pascal+title(w), train+"-"+title(w)
		}
		forms := []string{
			strings.ToUpper(snake), strings.Join(words, "-"), strings.Join(words, "."), train,
			"--" + strings.Join(words, "-"),
		}
		// one letter before a capital is an acronym
		if !strings.Contains(snake, "x") && !strings.Contains(snake, "o_") {
			forms = append(forms, camel, pascal)
		}
		for _, form := range forms {
			if Name(form) != want {
				t.Fatalf("%q is %v, %q is %v", snake, want, form, !want)
			}
		}
	}
}

func TestNameAllocatesNothing(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "providers.openai.base", "maxOutputTokens", "timestamp"} {
		if n := testing.AllocsPerRun(100, func() { Name(name) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("apiKey")
	f.Add("é_token")
	f.Fuzz(func(t *testing.T, name string) {
		separated := strings.NewReplacer("-", "_", ".", "_").Replace(name)
		if Name(name) != Name(separated) {
			t.Errorf("%q differs from %q", name, separated)
		}
	})
}
