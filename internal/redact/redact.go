// Package redact keeps secrets out of logs, streams and argument lists.
//
// It promises that what it recognises is gone from what it returns, that masking twice changes nothing more, that text
// without a secret comes back as it was and costs no allocation, and that its time grows with the length of the text
// only. It recognises secrets by the name beside them, by the place (an authorization header, the password of a URL)
// and by well-known formats.
//
// What somebody knows to be a secret is found by its value (Known), whatever stands around it and in the usual
// encodings.
//
// It refuses to guess: a random string with nothing beside it stays. It never changes what it is given, and it is no
// proof that a text is clean.
package redact

import "strings"

// Mask stands where a secret stood.
const Mask = "[REDACTED]"

// span is a part of a text and what to put there.
type span struct {
	start, end int
	with       string
}

// String masks the secrets in a text: header lines, NAME=value, "name": "value", --name value, URLs, bearer tokens and
// well-known formats. JSON in the text nearly always stays JSON; who has the tree and needs certainty uses Value.
func String(s string) string {
	masked, _ := mask(s, nil)
	return masked
}

// mask replaces what is found, and counts it. Where fits is there, a name or a place is not enough: the value must fit
// too.
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

// The bytes at which a secret can be told; everything else is passed over. Two words of bits instead of a table: a
// table would be a global, and this is what a clean text costs.
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

// find is the first span at or after low that must change.
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
		low, i = found.end, found.end-1 // masked already
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

// bearer is the token after "Bearer ". Written small it is often just a word, so then the token must have a digit.
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

// userinfo is the password of a URL whose authority begins at i. A name without a password is left, unless it is as
// long as a token.
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
	case strings.HasPrefix(s[colon+1:], Mask+"@"): // so that a second time finds no longer password
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

// boundary says that nothing of a word stands before i. The n of an escaped \n and the D of %3D are no words.
func boundary(s string, i int) bool {
	switch {
	case i == 0 || !alnum(s[i-1]):
		return true
	case i >= 2 && s[i-2] == '\\':
		return strings.IndexByte("nrtbf", s[i-1]) >= 0
	}
	return i >= 3 && s[i-3] == '%'
}
