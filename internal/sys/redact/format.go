package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// LooksSecret reports whether the whole value is a secret in a well-known format, and which. It serves to refuse
// secrets on a command line, so it does not guess: a text that merely mentions a secret, or a random string, is
// accepted. It looks through a leading "Bearer " and NAME=.
func LooksSecret(value string) (kind string, ok bool) {
	value = strings.TrimSpace(value)
	if len(value) > 7 && strings.EqualFold(value[:7], "bearer ") {
		value = strings.TrimSpace(value[7:])
	}
	if name, rest, found := strings.Cut(value, "="); found && name != "" && !strings.ContainsAny(name, " \t\n/?&:") {
		if kind, ok := whole(rest); ok {
			return kind, true
		}
	}
	return whole(value)
}

func whole(value string) (string, bool) {
	start, end, kind := findFormat(value, 0)
	if kind == "" || start != 0 || strings.Trim(value[end:], "=\n") != "" {
		return "", false
	}
	return kind, true
}

// findFormat returns the first well-known secret at or after low.
func findFormat(s string, low int) (start, end int, kind string) {
	for i := low; i < len(s); i++ {
		if !trigger(s[i]) {
			continue
		}
		if start, end, kind = format(s, low, i); kind != "" {
			return start, end, kind
		}
	}
	return 0, 0, ""
}

// format recognises a well-known secret by the byte at i that its prefix ends with (or, for capital A, begins with). It
// does not begin before low.
func format(s string, low, i int) (start, end int, kind string) {
	switch s[i] {
	case '-':
		if strings.HasPrefix(s[i:], "-----BEGIN ") && (i == 0 || s[i-1] != '-') {
			return privateKey(s, i)
		}
		return prefixedKey(s, low, i)
	case '_':
		return prefixedKey(s, low, i)
	case '.':
		if start, ok := prefixed(s, low, i, "ya29"); ok {
			return body(s, start, i+1, 16, "-_", anything, "google-oauth")
		}
		return jwt(s, low, i)
	case 'A':
		return capital(s, i)
	}
	return 0, 0, ""
}

// prefixed reports whether the text before i ends with prefix, as a word.
func prefixed(s string, low, i int, prefix string) (start int, ok bool) {
	start = i - len(prefix)
	return start, start >= low && s[start:i] == prefix && boundary(s, start)
}

type demand int

const (
	anything  demand = iota
	oneDigit         // tells keys from words in kebab case
	threeSort        // capitals, small letters and digits
)

// body takes the letters, digits and extra bytes from i on, if there are at least that many and they meet the demand.
// The demand looks at the first 96 bytes only, so that a text of nothing but prefixes takes linear time.
func body(s string, start, i, least int, extra string, want demand, kind string) (int, int, string) {
	end := i
	var digits, uppers, lowers bool
	met := func() bool { return want == anything || digits && (want == oneDigit || uppers && lowers) }
	for end < len(s) && (alnum(s[end]) || strings.IndexByte(extra, s[end]) >= 0) {
		if end-i >= 96 && !met() {
			return 0, 0, ""
		}
		digits, uppers, lowers = digits || digit(s[end]), uppers || upper(s[end]), lowers || lower(s[end])
		end++
	}
	if end-i < least || !met() {
		return 0, 0, ""
	}
	return start, end, kind
}

// keyFormat is a format of keys: prefix, more, and a body.
type keyFormat struct {
	prefix string // ends with the dash or the underscore that triggers the search
	more   string // what has to follow it; a format with more precedes the one without
	least  int    // bytes of the body
	extra  string // bytes of the body that are neither letters nor digits
	want   demand
	kind   string
}

// prefixedKey recognises the keys that begin with a prefix. A new format is a new row.
func prefixedKey(s string, low, i int) (int, int, string) {
	if i < 2 || strings.IndexByte("abfikmoprstu", s[i-1]) < 0 { // the last letters of the prefixes; most texts end here
		return 0, 0, ""
	}
	for _, k := range &[...]keyFormat{
		{"sk-", "ant-", 12, "-_", anything, "anthropic"},
		{"sk-", "proj-", 12, "-_", anything, "openai"},
		{"sk-", "", 16, "-_", oneDigit, "openai"},
		{"glpat-", "", 16, "-_.", anything, "gitlab"},
		{"pypi-", "", 16, "-_", threeSort, "pypi"},
		{"xoxa-", "", 10, "-", oneDigit, "slack"},
		{"xoxb-", "", 10, "-", oneDigit, "slack"},
		{"xoxp-", "", 10, "-", oneDigit, "slack"},
		{"xoxr-", "", 10, "-", oneDigit, "slack"},
		{"xoxs-", "", 10, "-", oneDigit, "slack"},
		{"ghp_", "", 16, "_", anything, "github"},
		{"gho_", "", 16, "_", anything, "github"},
		{"ghu_", "", 16, "_", anything, "github"},
		{"ghs_", "", 16, "_", anything, "github"},
		{"ghr_", "", 16, "_", anything, "github"},
		{"github_pat_", "", 16, "_", anything, "github"},
		{"npm_", "", 30, "", anything, "npm"},
		{"hf_", "", 30, "", anything, "huggingface"},
	} {
		last := len(k.prefix) - 1
		if s[i] != k.prefix[last] || s[i-1] != k.prefix[last-1] {
			continue
		}
		if start, ok := prefixed(s, low, i, k.prefix[:last]); ok && strings.HasPrefix(s[i+1:], k.more) {
			return body(s, start, i+1+len(k.more), k.least, k.extra, k.want, k.kind)
		}
	}
	return 0, 0, ""
}

// privateKey returns a PEM block, or its beginning if the end is missing.
func privateKey(s string, i int) (int, int, string) {
	const begin, dashes = "-----BEGIN ", "-----"
	label, _, ok := strings.Cut(s[i+len(begin):min(len(s), i+len(begin)+64)], dashes)
	if !ok || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
		return 0, 0, ""
	}
	// The next dashes are those of the end; looking no further keeps the time linear.
	from := i + len(begin) + len(label) + len(dashes)
	end := len(s)
	if next := strings.Index(s[from:], dashes); next >= 0 {
		end = from + next
		if last := "-----END " + label + dashes; strings.HasPrefix(s[end:], last) {
			return i, end + len(last), "private-key"
		}
	}
	// Cut off: it ends with the string that contains it, before the quotation mark.
	if mark := strings.IndexAny(s[from:end], "\"'`"); mark >= 0 {
		for end = from + mark; s[end-1] == '\\'; end-- {
		}
	}
	return i, end, "private-key"
}

func capital(s string, i int) (int, int, string) {
	if len(s) < i+20 {
		return 0, 0, ""
	}
	switch s[i : i+4] {
	case "AKIA", "ASIA":
		for j := i + 4; j < i+20; j++ {
			if !upper(s[j]) && !digit(s[j]) {
				return 0, 0, ""
			}
		}
		if boundary(s, i) && (len(s) == i+20 || !alnum(s[i+20])) {
			return i, i + 20, "aws"
		}
	case "AIza":
		if boundary(s, i) {
			return body(s, i, i+4, 35, "-_", anything, "google")
		}
	}
	return 0, 0, ""
}

// jwt returns a JSON Web Token whose first part ends at the dot at i. The bytes before the dot must decode to a JSON
// object with "alg": three words with dots between them are not enough.
func jwt(s string, low, dot int) (int, int, string) {
	start := dot
	for start > low && dot-start < maxJWTHeader && urlByte(s[start-1]) {
		start--
	}
	if dot+1 >= len(s) || !urlByte(s[dot+1]) || dot-start < 12 {
		return 0, 0, ""
	}
	start = jwtStart(s, start, dot)
	if start < 0 || !jwtHeader(s[start:dot]) {
		return 0, 0, ""
	}
	end, dots := dot, 0
	for end < len(s) && (s[end] == '.' && end+1 < len(s) && urlByte(s[end+1]) || urlByte(s[end])) {
		if s[end] == '.' {
			dots++
		}
		end++
	}
	if dots < 2 {
		return 0, 0, ""
	}
	return start, end, "jwt"
}

const maxJWTHeader = 4096

// jwtStart finds where the first part begins: a brace encodes to "e" and one of few letters. It may be preceded by the
// letter of an escape or a word joined with a dash or an underscore.
func jwtStart(s string, start, dot int) int {
	if start > 0 && s[start-1] == '\\' {
		start++
	} else if start > 0 && s[start-1] == '%' {
		start += 2
	}
	if part := s[start:dot]; strings.HasPrefix(part, "ey") || strings.HasPrefix(part, "ew") {
		return start
	}
	if j := strings.Index(s[start:dot], "eyJ"); j > 0 && !alnum(s[start+j-1]) {
		return start + j
	}
	return -1
}

func jwtHeader(part string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return false
	}
	var header struct {
		Alg *json.RawMessage `json:"alg"`
	}
	return json.Unmarshal(raw, &header) == nil && header.Alg != nil
}

// urlByte reports whether a byte belongs to unpadded URL-safe base64.
func urlByte(c byte) bool { return alnum(c) || c == '-' || c == '_' }
