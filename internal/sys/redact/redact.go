// Package redact keeps secrets out of logs, streams and argument lists.
//
// It promises that what it recognises is removed, that masking twice changes nothing more, that text without a secret
// is returned unchanged and without an allocation, and that its time is linear in the length of the text. It recognises
// secrets by their name, by their place (an authorization header, the password of a URL) and by well-known formats.
//
// Known finds given secrets by their value, in any context and in the usual encodings.
//
// It does not guess: a random string without a name is not masked. It never changes its arguments, and does not prove
// that a text is clean.
package redact

import "strings"

// Mask replaces a secret.
const Mask = "[REDACTED]"

// span is a part of a text and its replacement.
type span struct {
	start, end int
	with       string
}

// String masks the secrets in a text: header lines, NAME=value, "name": "value", --name value, URLs, bearer tokens and
// well-known formats. JSON in the text nearly always remains JSON; Value guarantees it.
func String(s string) string {
	masked, _ := mask(s, nil)
	return masked
}

// mask replaces what it finds, and counts it. If fits is not nil, the value must satisfy it.
func mask(s string, fits func(s string, i int, found span) bool) (masked string, n int) {
	found, ok := find(s, 0, fits)
	if !ok {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s))
	done := 0
	for ; ok; n++ {
		b.WriteString(s[done:found.start])
		b.WriteString(found.with)
		done = found.end
		found, ok = find(s, done, fits)
	}
	b.WriteString(s[done:])
	return b.String(), n
}

// The bytes at which a secret can be recognised; all others are skipped. They are two words of bits, because a table
// would be a global, and this is the cost of a clean text.
const (
	triggersLow  = 1<<'-' | 1<<'.' | 1<<':' | 1<<'='
	triggersHigh = 1<<('A'-64) | 1<<('B'-64) | 1<<('b'-64) | 1<<('_'-64)
)

func trigger(c byte) bool {
	bits := uint64(triggersLow)
	if c >= 64 {
		bits = triggersHigh
	}
	return c < 128 && bits>>(c&63)&1 != 0
}

// find returns the first span at or after low that must change.
func find(s string, low int, fits func(string, int, span) bool) (span, bool) {
	for i := low; i < len(s); i++ {
		c := s[i]
		if !trigger(c) {
			continue
		}
		found, ok := judge(s, low, i)
		if !ok || found.start < low || found.start >= found.end || fits != nil && !fits(s, i, found) {
			continue
		}
		if s[found.start:found.end] != found.with {
			return found, true
		}
		low, i = found.end, found.end-1 // already masked
	}
	return span{}, false
}

func judge(s string, low, i int) (span, bool) {
	switch s[i] {
	case ':':
		if strings.HasPrefix(s[i+1:], "//") {
			return userinfo(s, i+3)
		}
		return pair(s, low, i)
	case '=':
		return pair(s, low, i)
	case 'B', 'b':
		return bearer(s, i)
	}
	if start, end, kind := format(s, low, i); kind != "" {
		return span{start, end, Mask}, true
	}
	if s[i] == '-' {
		return flag(s, i)
	}
	return span{}, false
}

// bearer returns the token after "Bearer ". In lower case it is often just a word, so then the token must have a digit.
func bearer(s string, i int) (span, bool) {
	const length = len("bearer")
	if len(s) < i+length+2 || !strings.EqualFold(s[i:i+length], "bearer") || !boundary(s, i) {
		return span{}, false
	}
	start := i + length
	for start < len(s) && s[start] == ' ' {
		start++
	}
	if start == i+length {
		return span{}, false
	}
	end, digits := start, false
	for ; end < len(s) && (alnum(s[end]) || strings.IndexByte("._~+/=-", s[end]) >= 0); end++ {
		digits = digits || digit(s[end])
	}
	for end > start && s[end-1] == '.' {
		end--
	}
	switch strings.ToLower(s[start:min(end, start+16)]) {
	case "token", "tokens", "auth", "authentication", "authorization", "scheme", "credential", "credentials", "format",
		"header":
		return span{}, false
	}
	if s[i] == 'b' && !digits {
		return span{}, false
	}
	return span{start, end, Mask}, end > start
}

// userinfo returns the password of a URL whose authority begins at i. A name without a password is not masked, unless
// it is as long as a token.
func userinfo(s string, i int) (span, bool) {
	colon, slash, at := -1, len(s), -1
	for j := i; j < len(s); j++ {
		c := s[j]
		if space(c) || c == '"' || c == '<' || c == '>' || c == '/' || c == '?' || c == '#' || c == '\\' {
			slash = j
			break
		}
		if c == ':' && colon < 0 && at < 0 {
			colon = j
		}
		if c == '@' {
			at = j
		}
	}
	switch {
	case i < len(s) && s[i] == '[' && at < 0: // an IPv6 address
		return span{}, false
	case colon < 0:
		return span{i, at, Mask}, at-i >= 20
	case strings.HasPrefix(s[colon+1:], Mask+"@"): // so that a second pass does not find a longer password
		return span{colon + 1, colon + 1 + len(Mask), Mask}, true
	case at > colon:
		return span{colon + 1, at, Mask}, true
	case at >= 0 || port(s[colon+1:slash]):
		return span{}, false
	}
	// A password with a slash that should have been escaped. Looking no further than this keeps the time linear.
	for j := slash; j < min(len(s), slash+256) && !space(s[j]) && s[j] != '"'; j++ {
		if s[j] == '@' {
			return span{colon + 1, j, Mask}, true
		}
	}
	return span{}, false
}

func port(s string) bool {
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
	}
	return true
}

// boundary reports whether no part of a word precedes i. The n of an escaped \n and the D of %3D do not count.
func boundary(s string, i int) bool {
	switch {
	case i == 0 || !alnum(s[i-1]):
		return true
	case i >= 2 && s[i-2] == '\\':
		return strings.IndexByte("nrtbf", s[i-1]) >= 0
	}
	return i >= 3 && s[i-3] == '%'
}
