package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

const (
	token36 = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	jwtText = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiZXhwIjoxNzAwMDAwMDAwfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
	pemText = "-----BEGIN RSA PRIVATE " +
		"KEY-----\nMIIEpAIBAAKCAQEA04up8hoqzS1+APIB0RhjXyObwHQnOzhAk5Bd7mhkSbPkyhP1\n-----END RSA PRIVATE KEY-----"
)

// formats are secrets by their look alone. They are put together here, so that no scanner takes the source for a leak.
func formats() map[string]string {
	return map[string]string{
		"sk-" + "abcdEFGH1234567890abcdEFGH":         "openai",
		"sk-" + "proj-Ab12Cd34Ef56Gh78Ij90_Kl-Mn":    "openai",
		"sk-" + "ant-api03-AbCdEf0123456789-_AbCdEf": "anthropic",
		token36:              "github",
		"gho_" + token36[4:]: "github",
		"ghu_" + token36[4:]: "github",
		"ghs_" + token36[4:]: "github",
		"ghr_" + token36[4:]: "github",
		"github_" + "pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789ABC": "github",
		"glpat-" + "abcDEF123456ghiJKL78":                                    "gitlab",
		"xoxb-" + "123456789012-abcdefABCDEF":                                "slack",
		"AKIA" + "IOSFODNN7EXAMPLE":                                          "aws",
		"ASIA" + "IOSFODNN7EXAMPLE":                                          "aws",
		"AIza" + "SyA1234567890abcdefghijklmnopqrstuv":                       "google",
		"ya29." + "a0AfH6SMBxyz_1234567890-abc":                              "google-oauth",
		"npm_" + "abcdefghijklmnopqrstuvwxyz0123456789":                      "npm",
		"hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH":                         "huggingface",
		"pypi-" + "AgEIcHlwaS5vcmcCJDU2Nzg5MGFi":                             "pypi",
		jwtText:                                                              "jwt",
		pemText:                                                              "private-key",
	}
}

func TestFormats(t *testing.T) {
	for secret, kind := range formats() {
		if got, ok := LooksSecret(secret); !ok || got != kind {
			t.Errorf("LooksSecret(%q) = %q, %v", secret, got, ok)
		}
		if got, ok := LooksSecret(" Bearer " + secret + "\n"); !ok || got != kind {
			t.Errorf("LooksSecret(Bearer %q) = %q, %v", secret, got, ok)
		}
		if _, ok := LooksSecret("fix the bug with " + secret); ok {
			t.Errorf("a text that mentions %q is a secret", secret)
		}
		for _, frame := range []string{
			"%", "x %.", "%\n", "(%)", `"%"`, `{"text":"see %, then"}`, `a\n%`,
			"https://h/p?x=%&y=1", "q%3D%", "<%>", "%,%", "was:%",
		} {
			in := strings.ReplaceAll(frame, "%3D%", "\x00")
			in = strings.ReplaceAll(strings.ReplaceAll(in, "%", secret), "\x00", "%3D"+secret)
			out := String(in)
			if strings.Contains(out, secret) || !strings.Contains(out, Mask) {
				t.Errorf("String(%q) = %q", in, out)
			}
			if again := String(out); again != out {
				t.Errorf("String(%q) = %q", out, again)
			}
			masked, found := Summaries(in)
			if !found || strings.Contains(masked, secret) {
				t.Errorf("Summaries(%q) = %q, %v", in, masked, found)
			}
			if again, found := Summaries(masked); found {
				t.Errorf("Summaries(%q) = %q", masked, again)
			}
		}
	}
}

func TestLooksSecretMakesNoGuess(t *testing.T) {
	for _, value := range []string{
		"", "sk-learn-something-much-longer-than-that", "hunter2", "a.b.c", "eyJhb.eyJz.abc",
		"npm_config_registry_is_not_a_token_at_all",
		"AKIAlowercase", "0123456789abcdef0123456789abcdef01234567", "550e8400-e29b-41d4-a716-446655440000",
		"pypi-some-package-name-in-kebab",
		"xoxo-lovely", "hf_hub_download", "ghp_short", "github_pat_", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"task-sk-1",
	} {
		if kind, ok := LooksSecret(value); ok {
			t.Errorf("%q is %s", value, kind)
		}
		if got := String(value); got != value {
			t.Errorf("String(%q) = %q", value, got)
		}
	}
	if kind, ok := LooksSecret("GH=" + token36); !ok || kind != "github" {
		t.Errorf("NAME=secret: %q, %v", kind, ok)
	}
}

func TestString(t *testing.T) {
	for _, c := range [][2]string{
		{"Authorization: Bearer xyz", "Authorization: #"},
		{"Authorization: Basic dXNlcjpwYXNz\r\nHost: h", "Authorization: #\r\nHost: h"},
		{"authorization:Digest username=\"Mufasa\", response=\"6629\"", "authorization:#"},
		{"> Proxy-Authorization: x y z\n< ok", "> Proxy-Authorization: #\n< ok"},
		{"Cookie: a=b; c=d", "Cookie: #"},
		{"set-cookie: a=b; Path=/", "set-cookie: #"},
		{"X-Api-Key: abc", "X-Api-Key: #"},
		{"x-auth-token: abc", "x-auth-token: #"},
		{`curl -H "Authorization: Bearer xyz" https://h`, `curl -H "Authorization: #" https://h`},
		{`curl -H 'X-Api-Key: abc' https://h`, `curl -H 'X-Api-Key: #' https://h`},
		{
			`{"log":"GET /\nAuthorization: Bearer xyz\nHost: h","n":1}`,
			`{"log":"GET /\nAuthorization: #\nHost: h","n":1}`,
		},
		{`{"Authorization":["Bearer a","b"],"n":1}`, `{"Authorization":["#"],"n":1}`},
		{"sent Bearer xyz.", "sent Bearer #."},
		{"a bearer of news", "a bearer of news"},
		{"a Bearer token", "a Bearer token"},
		{"bearer abc1", "bearer #"},
		{"OPENAI_API_KEY=abc node x.js", "OPENAI_API_KEY=# node x.js"},
		{"export DB_PASS='a b' && x", "export DB_PASS='#' && x"},
		{"STRIPE_KEY=abc, then", "STRIPE_KEY=#, then"},
		{"(token=abc)", "(token=#)"},
		{"password=ab'cd\"ef x", "password=# x"},
		{"idempotency_key=abc key=abc max_tokens=5", "idempotency_key=abc key=abc max_tokens=5"},
		{"requires_auth=true auth=false token=null", "requires_auth=true auth=false token=null"},
		{`{"password": "hunter2", "n": 1}`, `{"password": "#", "n": 1}`},
		{`{"token":123}`, `{"token":"#"}`},
		{
			`{"token":null,"auth":true,"tokens":12,"secret":{"a":1}}`,
			`{"token":null,"auth":true,"tokens":12,"secret":{"a":1}}`,
		},
		{`{"password":"a\"b\\","n":1}`, `{"password":"#","n":1}`},
		{`{"password":"cut of`, `{"password":"#`},
		{`{"x":"{\"password\":\"hun\\\"ter2\",\"n\":1}"}`, `{"x":"{\"password\":\"#\",\"n\":1}"}`},
		{`{"x":"{\"token\": 12}"}`, `{"x":"{\"token\": \"#\"}"}`},
		{`{'apiKey': 'abc'}`, `{'apiKey': '#'}`},
		{"map[token:abc user:bob]", "map[token:# user:bob]"},
		{"db:\n  password: hunter2\n  user: bob", "db:\n  password: #\n  user: bob"},
		{"- token: abc", "- token: #"},
		{"12:00 INFO password: hunter2", "12:00 INFO password: #"},
		{"wrong password: try again", "wrong password: try again"},
		{"invalid token: EOF", "invalid token: EOF"},
		{"password = \"hunter2\"\n", "password = \"#\"\n"},
		{"password = hunter2\nx = 1", "password = #\nx = 1"},
		{"token := lexer.Next()", "token := lexer.Next()"},
		{"if token == nil {", "if token == nil {"},
		{"token = next()", "token = next()"},
		{"run --token abc --json", "run --token # --json"},
		{"run --api-key=abc x", "run --api-key=# x"},
		{`x --password "a b" c`, `x --password "#" c`},
		{"run --token-limit 5 --idempotency-key abc", "run --token-limit 5 --idempotency-key abc"},
		{"--token --json", "--token --json"},
		{
			"the flag --password is refused; use --password-from-env NAME",
			"the flag --password is refused; use --password-from-env NAME",
		},
		{`["x","--token","abc","-v"]`, `["x","--token","#","-v"]`},
		{`"[\"--token\", \"abc\"]"`, `"[\"--token\", \"#\"]"`},
		{"--password -Ab3", "--password #"},
		{"--auth -v x", "--auth -v x"},
		{"https://user:pw@host/p", "https://user:#@host/p"},
		{"postgres://u:p@ss@h:5432/db", "postgres://u:#@h:5432/db"},
		{"https://user:p/w@host/x", "https://user:#@host/x"},
		{"http://host:8080/@scope/pkg", "http://host:8080/@scope/pkg"},
		{"https://user@host/x", "https://user@host/x"},
		{"http://[::1]:80/a@b", "http://[::1]:80/a@b"},
		{"https://0123456789abcdef0123@host", "https://#@host"},
		{
			"x https://registry.packages.example/@scope/pkg@1.2.3 y",
			"x https://registry.packages.example/@scope/pkg@1.2.3 y",
		},
		{"GET /x?access_token=abc&n=1#f", "GET /x?access_token=#&n=1#f"},
		{"https://h/?key=abc&sig=d&q=1", "https://h/?key=#&sig=#&q=1"},
		{"X-Amz-Signature=1 ?X-Amz-Signature=abc&X-Amz-Date=2", "X-Amz-Signature=1 ?X-Amz-Signature=#&X-Amz-Date=2"},
		{"a\\nAPI_KEY=abc", "a\\nAPI_KEY=#"},
		{"author: Jo Smith <jo@x.org>, version 1.2.3-rc.1+b5", "author: Jo Smith <jo@x.org>, version 1.2.3-rc.1+b5"},
		{
			"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
			"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
		},
		{"a -----BEGIN PRIVATE KEY-----\nabc", "a #"},
		{"x\n" + pemText + "\ny", "x\n#\ny"},
	} {
		want := c[1]
		if want != c[0] {
			want = strings.ReplaceAll(c[1], "#", Mask)
			if strings.HasSuffix(c[0], "#f") {
				want = strings.TrimSuffix(want, Mask+"f") + "#f"
			}
		}
		if got := String(c[0]); got != want {
			t.Errorf("String(%q)\n  got %q\n want %q", c[0], got, want)
		} else if again := String(got); again != got {
			t.Errorf("again: String(%q) = %q", got, again)
		}
	}
}

// A line of JSON stays one, also where a value is open or nested.
func TestStringKeepsJSON(t *testing.T) {
	for _, text := range []string{
		"a password=abc", "say password=\"abc", `{"token":"a\"b","n":[1,{"secret":2}]}`,
		"Authorization: Bearer x\nHost: y", "Cookie: a=\"b\"; c=d",
		"-----BEGIN PRIVATE KEY-----\nabc", pemText, "--token abc", `--token "abc"`, "https://u:p@h/?token=a&b=c",
		`["--password","x"]`, "token: abc",
		`C:\token=abc\`, "password='a b'", jwtText, "Bearer abc", `{"a":{"auth":["x","y"],"cookie":true}}`,
		`x "password": "`, "x-api-key:\tk",
	} {
		line := []byte(nil)
		for range 3 { // a string in a string in a string
			if line != nil {
				text = string(line)
			}
			line, _ = json.Marshal(map[string]any{
				"type": "text", "text": text, "tokens": 5,
				"list": []string{text, "z"},
			})
			out := String(string(line))
			if !json.Valid([]byte(out)) {
				t.Errorf("%s\nbecomes %s", line, out)
			}
			if again := String(out); again != out {
				t.Errorf("%s\nthen %s", out, again)
			}
		}
	}
}

const clean = `{"type":"result","session_id":"0f8fad5b-d9cb-469f-a165-70867728950e","usage":{"input_tokens":12,"output_tokens":34},` +
	`"text":"The build is broken because internal/agent/codex-cli.go calls run_all() before the list is read. Better: read it first."} `

func cleanKiB() string { return strings.Repeat(clean, 8)[:1024] }

func TestCleanTextCostsNothing(t *testing.T) {
	s := cleanKiB()
	masked := "Authorization: " + Mask + "\n" + `{"token":"` + Mask + `"}`
	for _, text := range []string{s, masked} {
		if String(text) != text {
			t.Fatalf("changed: %q", String(text))
		}
		if n := testing.AllocsPerRun(100, func() { String(text) }); n != 0 {
			t.Errorf("String: %v allocations", n)
		}
		if n := testing.AllocsPerRun(100, func() { Summaries(text) }); n != 0 {
			t.Errorf("Summaries: %v allocations", n)
		}
	}
}

// Texts made to be slow: four times the length may take four times as long, not sixteen.
func TestTimeIsLinear(t *testing.T) {
	for _, unit := range []string{
		"sk-", "sk-a", "eyJ-", "eyJ.", "://a:b", "://a:b/", "token", "token=", "token= ", "token: ", `"token":[`,
		`\"token\":[1,`, "--token ", "-----BEGIN ", "-----BEGIN PRIVATE KEY", "-----BEGIN PRIVATE KEY-----'", "ghp_",
		"Bearer ", `\`, `\"`, "AIza", "xoxb-", "pypi-", "a=",
		"Cookie: \"", "password = x ( ", "a-", "Ab1/", "c1.", "token=\\", "-", "--a", "password =  ", "Ab3+dE5/",
		"'token':'", "eyJhbGciOiJIUzI1NiJ9.",
	} {
		hermetic.Linear(t, unit, 1<<15, func(n int) {
			s := strings.Repeat(unit, n/len(unit))
			String(s)
			Summaries(s)
		})
	}
}

func BenchmarkStringClean(b *testing.B) {
	s := cleanKiB()
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		String(s)
	}
}

func BenchmarkStringProse(b *testing.B) {
	s := strings.Repeat("The quick brown fox jumps over the lazy dog, and then some more of it. ", 20)[:1024]
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		String(s)
	}
}

func BenchmarkStringSecret(b *testing.B) {
	s := cleanKiB() + " OPENAI_API_KEY=abc " + token36
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		String(s)
	}
}

func BenchmarkSummariesClean(b *testing.B) {
	s := cleanKiB()
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		Summaries(s)
	}
}

func BenchmarkName(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Name("providers.openai.apiKey")
	}
}

func FuzzString(f *testing.F) {
	f.Add(clean)
	f.Add("Authorization: Bearer x\n--token a 'b' \"token\": [\"x\"] https://a:b@c")
	f.Fuzz(func(t *testing.T, s string) {
		once := String(s)
		if twice := String(once); twice != once {
			t.Errorf("%q\n once %q\ntwice %q", s, once, twice)
		}
	})
}

// A secret in a well-known format is found wherever it stands between two words.
func FuzzStringFindsFormats(f *testing.F) {
	f.Add("a ", " b")
	f.Add(`{"x":"`, `"}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, secret := range []string{token36, jwtText, "AKIA" + "IOSFODNN7EXAMPLE"} {
			if out := String(before + " " + secret + " " + after); strings.Contains(out, secret) &&
				!strings.Contains(before+after, secret) {
				t.Errorf("%q", out)
			}
		}
	})
}
