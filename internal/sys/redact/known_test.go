package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// a value without any format that would tell it, and with bytes that every encoding writes otherwise
const canary = `Kq7/vZ+p"2x&Lw9=tRm4<b`

// TestKnown finds a value however it was encoded, and wherever it stands.
func TestKnown(t *testing.T) {
	t.Parallel()
	known := Known("short", canary, "second-value-81")
	quoted, _ := json.Marshal(canary)
	forms := []string{
		canary, url.QueryEscape(canary), url.PathEscape(canary), lowerEscapes(url.QueryEscape(canary)),
		hex.EncodeToString([]byte(canary)),
		strings.ToUpper(hex.EncodeToString([]byte(canary))), string(quoted), "second-value-81",
	}
	for _, around := range []string{"", "a", "ab", "abc", "user:", "pass=x"} {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(around+canary+around)),
			base64.URLEncoding.EncodeToString([]byte(around+canary+"\n")))
	}
	for _, form := range forms {
		for _, text := range []string{form, "x" + form, form + form, "before " + form + " after\nshort\n" + form} {
			masked, n := known.Count(text)
			if n == 0 || !strings.Contains(masked, Mask) || strings.Contains(masked, form) || leaks(masked) {
				t.Errorf("%q: %d, %q", text, n, masked)
			}
			if again, n := known.Count(masked); again != masked || n != 0 {
				t.Errorf("twice: %q", again)
			}
			if got := string(known.Bytes([]byte(text))); got != masked {
				t.Errorf("bytes: %q", got)
			}
		}
	}
	if text := "short words, " + canary[1:]; known.String(text) != text {
		t.Errorf("got %q", known.String(text))
	}
	if got := known.String("a " + canary + " b " + canary + "."); got != "a "+Mask+" b "+Mask+"." {
		t.Errorf("got %q", got)
	}
}

// TestKnownIgnoresShortValues: a value of fewer than eight bytes is part of ordinary words, and masks nothing.
func TestKnownIgnoresShortValues(t *testing.T) {
	t.Parallel()
	const text = `{"type":"session.background_tasks_changed","kind":"back"}`
	const name = "background"
	for length := 1; length < len(name); length++ {
		masked := Known(name[:length]).String(text)
		if short := length < 8; (masked == text) != short {
			t.Errorf("%d bytes: %s", length, masked)
		}
	}
}

// leaks: six bytes of the canary in a row are left, plain or decoded.
func leaks(s string) bool {
	for i := 0; i+6 <= len(canary); i++ {
		if strings.Contains(s, canary[i:i+6]) {
			return true
		}
	}
	return false
}

// TestKnownOfNothing costs nothing and changes nothing.
func TestKnownOfNothing(t *testing.T) {
	t.Parallel()
	for _, none := range []*Values{nil, Known(), Known("", "1234567", "   abc   ")} {
		if none != nil {
			t.Errorf("got %v", none)
		}
		if got := none.String("1234567"); got != "1234567" || string(none.Bytes([]byte(got))) != got ||
			none.Stream().Feed(got) != got || none.Stream().End() != "" {
			t.Errorf("got %q", got)
		}
	}
}

// TestKnownOfLines: a key of several lines is found as a whole, and each of its lines with something in front.
func TestKnownOfLines(t *testing.T) {
	t.Parallel()
	lines := []string{
		"-----BEGIN X PRIVATE KEY-----", strings.Repeat("Ab9+", 16), strings.Repeat("cD8/", 16),
		"eF7=eF7=eF7=eF7=eF7=eF7=", "-----END X PRIVATE KEY-----",
	}
	known := Known(strings.Join(lines, "\n"))
	for _, text := range []string{
		strings.Join(lines, "\n"), "1\t" + strings.Join(lines, "\n2\t"),
		strings.Join(lines, `\n`),
	} {
		masked := known.String(text)
		for _, line := range lines[1:4] {
			if strings.Contains(masked, line) {
				t.Errorf("%q", masked)
			}
		}
	}
	long := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", 5)
	if masked := Known(long).String("<" + long + ">"); masked != "<"+Mask+">" {
		t.Errorf("%q", masked)
	}
	if masked := Known(long).String(long[:150]); strings.Contains(masked, long[:64]) ||
		strings.Contains(masked, long[64:128]) {
		t.Errorf("the beginning of a long one: %q", masked)
	}
}

// TestStream: wherever a text is cut, what comes out is what String makes of the whole.
func TestStream(t *testing.T) {
	t.Parallel()
	known := Known(canary, "sk-abc-0123456789")
	text := "one " + canary + " two s sk sk-abc" + "sk-abc-0123456789" + "sk-abc-012345678\nthree " +
		base64.StdEncoding.EncodeToString([]byte("u:"+canary)) + " K"
	want := known.String(text)
	if strings.Count(want, Mask) != 3 {
		t.Fatalf("%q", want)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s, got := known.Stream(), ""
		for rest := text; rest != ""; {
			n := min(len(rest), 1+random.IntN(12))
			out := s.Feed(rest[:n])
			got, rest = got+out, rest[n:]
		}
		if got += s.End(); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
	if s := known.Stream(); s.Feed("plain text. ") != "plain text. " {
		t.Error("what begins no secret is told at once")
	}
}

// TestSecrets: which variables of an environment are masked by value, and which are not because ordinary texts contain
// the value.
func TestSecrets(t *testing.T) {
	t.Parallel()
	got := Secrets([]string{
		"FOO_TOKEN=canary-4711-xyz", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
		"DATABASE_URL=postgres://ann:s3cret-pass@db/x", "PLAIN=AKIA" + "IOSFODNN7EXAMPLE",
		"HTTPS_PROXY=http://ann:hunter22@proxy:1", "DB_PASSWORD=correct horse battery",
		"API_SERVER=localhost:8080", "API_MODE=production", "AUTH_TOKEN_FILE=/run/secret", "SECRET_KEY=/etc/key",
		"API_PASSWORD=password", "SECRET=", "PASS=12345678", "HOME=/home/ann",
		"GITHUB_TOKEN_URL=https://a/b", "API_URL=https://example.com/v1", "AUTH=true", "torn",
	})
	want := []string{
		"canary-4711-xyz", "wJalrXUtnFEMI/K7MDENG", "s3cret-pass", "AKIA" + "IOSFODNN7EXAMPLE", "hunter22",
		"correct horse battery",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestCredentials masks what looks like a key and leaves program text.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for secret, kind := range formats() {
		for _, text := range []string{secret, "x = \"" + secret + "\"", "  12\t" + secret + "\n"} {
			if masked, n := Credentials(text); n != 1 || strings.Contains(masked, secret) {
				t.Errorf("%s: %q", kind, masked)
			}
		}
	}
	for _, text := range []string{
		"api_key = \"9f8e7d6c5b4a39281706f5e4\"", "Authorization: Bearer abc.def-1234567",
		"curl --token 9f8e7d6c5b4a39281706f5e4 x", "postgres://ann:tr0ub4dor@db/x",
		`{"password":"9f8e7d6c5b4a39281706f5e4"}`,
	} {
		if masked, n := Credentials(text); n != 1 || masked == text {
			t.Errorf("%q stays", text)
		}
	}
	for text, want := range map[string]string{
		"PASSWORD=hunter2secret":                    "PASSWORD=[REDACTED]",
		"git clone https://bob:abcde@host/x":        "git clone https://bob:[REDACTED]@host/x",
		"redis://:x1@localhost:6379":                "redis://:[REDACTED]@localhost:6379",
		"export DB_PASS=letmein\nX=1":               "export DB_PASS=[REDACTED]\nX=1",
		"API_TOKEN='letmein'":                       "API_TOKEN='[REDACTED]'",
		`password: "correct-horse"`:                 `password: "[REDACTED]"`,
		`"password": "letmein",`:                    `"password": "[REDACTED]",`,
		"password: hunter2":                         "password: [REDACTED]",
		"Authorization: Bearer abcdef":              "Authorization: [REDACTED]",
		"curl -H 'Authorization: Basic dXNlcjpw' x": "curl -H 'Authorization: [REDACTED]' x",
		"     7\tclient_secret = \"letmein\"\n":     "     7\tclient_secret = \"[REDACTED]\"\n",
	} {
		if masked, n := Credentials(text); n != 1 || masked != want {
			t.Errorf("%q becomes %q", text, masked)
		} else if again, _ := Credentials(masked); again != masked {
			t.Errorf("%q becomes %q", masked, again)
		}
	}
	for _, text := range []string{
		"password: string", "password = user.password2", "password = password", "password: \"changeme\"",
		"PASSWORD=$SECRET", "PASSWORD=", "PASSWORD=your-password-here", "label: \"Password: please type it\"",
		"Password: \"Enter your password\"", "password=getpass()", "secret: required", "PASSWORD=xxxxxxxx",
		"Authorization: Bearer $TOKEN", "# Keep Authorization: headers here", "Authorization: Bearer YOUR_TOKEN", "token = \"letmein\"", "f(API_KEY=settings.API_KEY)", "token = next()", "const token = lexer.scanIdentifierOrKeyword", "if token == other {",
		"--token TOKEN", "api_key: ${API_KEY}",
		"postgres://postgres:postgres@localhost/db", "https://user:%s@host/", "the bearer of news",
		"Authorization: Bearer <your token here>", "secret := os.Getenv(\"SECRET_NAME_2\")",
		"passwordHash := sha256.Sum256(password)", "API_BASE=https://api.example.com", "",
		"token_limit = 200000000000000000000",
	} {
		if masked, n := Credentials(text); n != 0 || masked != text {
			t.Errorf("%q becomes %q", text, masked)
		}
	}
}

// TestDocumentedPatterns: what another program masks in what its model sees, and which of that we do. The exceptions
// are meant: an address without a password, the word bearer in a sentence, a value that is one letter repeated, and
// formats of another length than real ones have.
func TestDocumentedPatterns(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/yume.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Input  string
		Masked bool
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	differs := map[string]string{
		"api_key = aaaaaaaaaaaaaaaaaaa": "String masks a named value of any length",
		"REDIS://x":                     "an address without a password",
		"the bearer of news":            "a sentence",
		"ya29.abc-_d":                   "shorter than any token",
	}
	for _, v := range vectors {
		masked := String(v.Input) != v.Input
		if _, known := differs[v.Input]; known == (masked == v.Masked) {
			t.Errorf("%q: masked %v, there %v", v.Input, masked, v.Masked)
		}
	}
	if len(vectors) < 16 {
		t.Errorf("%d vectors", len(vectors))
	}
}

// TestKnownIsFast: fifty values that begin alike are not fifty times as slow as one.
func TestKnownIsFast(t *testing.T) {
	var values []string
	for i := range 50 {
		values = append(values, strings.Repeat("e", 4)+strings.Repeat(string(rune('a'+i%26)), 20+i))
	}
	text := strings.Repeat("the quick brown fox jumps over the lazy dog eeee ee e\n", 80_000) // 4 MB
	measure := func(values ...string) time.Duration {
		known := Known(values...)
		began := time.Now()
		if known.String(text) != text {
			t.Error("masked")
		}
		return time.Since(began)
	}
	// The least of some attempts, since the machine may be busy.
	one, all := measure(values[0]), measure(values...)
	for range 20 {
		if all <= 20*one {
			return
		}
		one, all = min(one, measure(values[0])), min(all, measure(values...))
	}
	t.Errorf("%v, and %v for %d values", one, all, len(values))
}

func BenchmarkKnown(b *testing.B) {
	known := Known(canary, "sk-abc-0123456789", "canary-4711-xyz", "wJalrXUtnFEMI/K7MDENG")
	text := strings.Repeat("func (s *Stream) Feed(text string) string { return s.values.String(s.held + text) }\n",
		12_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		known.String(text)
	}
}

func FuzzKnown(f *testing.F) {
	f.Add("value-of-a-secret", "before ", "after", 3)
	f.Fuzz(func(t *testing.T, secret, before, after string, cut int) {
		known := Known(secret)
		if known == nil || strings.Contains(Mask, strings.TrimSpace(secret)) {
			return
		}
		text := before + secret + after
		masked := known.String(text)
		value := strings.TrimSpace(secret)
		if len(value) < 2*piece && strings.Contains(masked, value) && !strings.Contains(before+Mask+after, value) {
			t.Errorf("%q is left in %q", value, masked)
		}
		s := known.Stream()
		at := min(max(cut, 0), len(text))
		got := s.Feed(text[:at])
		got += s.Feed(text[at:])
		if got += s.End(); strings.Contains(got, value) && !strings.Contains(masked, value) {
			t.Errorf("a stream leaves %q in %q", value, got)
		}
	})
}
