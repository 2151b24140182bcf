package redact

import "strings"

// Credentials masks credentials in program text, settings and diffs. It is stricter than String, since the value must
// look like a secret as well:
//
//   - after any secret name, a key: long, without blanks, letters and digits mixed;
//   - after a name such as password or secret, after Authorization and after a name in capitals and =, also a short
//     word that cannot be program text: `PASSWORD=hunter2secret`, `password: "correct-horse"`;
//   - in an address, any password that is not a placeholder.
//
// It does not mask `password: string`, `token = next()` and placeholders. n is the number of masked credentials.
func Credentials(s string) (masked string, n int) { return mask(s, fits) }

// The minimum length of a secret, by its context.
const (
	leastBearer = 12 // after Bearer
	leastNamed  = 20 // with a name, which may be a variable's
	leastPlain  = 6  // with a name that cannot be a variable's
)

// fits judges the value of a span found at the byte i.
func fits(s string, i int, found span) bool {
	value := s[found.start:found.end]
	switch c := s[i]; {
	case c == ':' && strings.HasPrefix(s[i+1:], "//"):
		user := s[i+3 : max(i+3, found.start-1)]
		return !placeholder(value) && value != user // postgres:postgres hides nothing
	case c == 'B' || c == 'b':
		return keyLike(value, leastBearer)
	case c == ':' || c == '=':
		return keyLike(value, leastNamed) || plainSecret(s, i, found)
	case c == '-' && strings.HasPrefix(s[i:], "--") && found.start > i:
		return keyLike(value, leastNamed)
	}
	return true // a well-known format
}

// keyLike reports whether a value is one long mixed word and not a placeholder.
func keyLike(value string, least int) bool {
	word := ""
	for _, field := range strings.Fields(value) { // Bearer …, Basic …
		if len(field) > len(word) {
			word = field
		}
	}
	if len(word) < least || strings.ContainsAny(word, "$<>{}()%*") {
		return false
	}
	var letters, digits bool
	for i := range len(word) {
		letters, digits = letters || upper(word[i]) || lower(word[i]), digits || digit(word[i])
	}
	return letters && digits
}

// plainSecret judges a value that does not look like a key, by its name and notation.
func plainSecret(s string, i int, found span) bool {
	name, value := nameBefore(s, i), s[found.start:found.end]
	quoted := found.start > 0 && isQuote(s[found.start-1])
	if strings.EqualFold(name, "authorization") || strings.EqualFold(name, "proxy-authorization") {
		words := strings.Fields(value)
		if len(words) != 2 || len(words[1]) < leastPlain || placeholder(words[1]) {
			return false
		}
		switch strings.ToLower(words[0]) {
		case "bearer", "basic", "token", "apikey", "key", "negotiate":
			return true
		}
		return false
	}
	adjoins := found.start == i+1 || quoted && found.start == i+2
	shell := s[i] == '=' && adjoins && i > 0 && nameByte(s[i-1]) && name == strings.ToUpper(name)
	switch {
	case !shell && !namesPassword(name), len(value) < leastPlain, strings.ContainsAny(value, " \t\n"):
		return false
	case placeholder(value), strings.Contains(strings.ToLower(value), strings.ToLower(name)):
		return false
	}
	if quoted || shell {
		return true
	}
	return strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, ".:/,;")
}

// nameBefore returns the name before the sign at i, without its quotes.
func nameBefore(s string, i int) string {
	end := i
	for end > 0 && strings.IndexByte(" \t\"'`\\", s[end-1]) >= 0 {
		end--
	}
	start := end
	for start > 0 && end-start < maxName && nameByte(s[start-1]) {
		start--
	}
	return s[start:end]
}

// namesPassword reports whether the last word of a name marks the value as a secret. In program text, a key or a token
// may be something else.
func namesPassword(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{
		"password", "passwd", "passphrase", "secret", "_pass", "apikey", "api_key", "api-key",
	} {
		if strings.HasSuffix(name, word) {
			return true
		}
	}
	return name == "pass"
}

// placeholder reports whether a value is a placeholder or program text.
func placeholder(value string) bool {
	if strings.ContainsAny(value, "$<>{}()[]%*") || strings.Trim(value, "xX.-_") == "" {
		return true
	}
	value = strings.ToLower(value)
	for _, word := range []string{
		"your", "example", "changeme", "change-me", "change_me", "placeholder", "redacted", "password", "passwd",
		"secret", "string", "process.env", "required", "optional", "missing", "invalid",
	} {
		if strings.HasPrefix(value, word) && (len(value) <= len(word)+6 || word == "your" || word == "process.env") {
			return true
		}
	}
	return false
}
