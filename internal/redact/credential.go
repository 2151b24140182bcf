package redact

import "strings"

// Credentials masks what is a credential by its own look, for texts that somebody works with: program text, settings,
// differences. It is String, but a name or a place beside a value is not enough; the value must look like a key, too:
// long, without blanks, letters and digits mixed, no placeholder. So `password: hunter2` in a file and `token = next()`
// in a program stay as they are. n is how many were masked.
func Credentials(s string) (masked string, n int) { return mask(s, fits) }

// How long a value must be to look like a key, by what says that it is one.
const (
	leastPassword = 8  // of an address
	leastBearer   = 12 // behind the word
	leastNamed    = 20 // beside a name, which may be that of a variable
)

// fits judges the value of a span that was found at the byte i.
func fits(s string, i int, found span) bool {
	value := s[found.start:found.end]
	switch c := s[i]; {
	case c == ':' && strings.HasPrefix(s[i+1:], "//"):
		return keyLike(value, leastPassword)
	case c == 'B' || c == 'b':
		return keyLike(value, leastBearer)
	case c == ':' || c == '=':
		return keyLike(value, leastNamed)
	case c == '-' && strings.HasPrefix(s[i:], "--") && found.start > i:
		return keyLike(value, leastNamed)
	}
	return true // a format
}

// keyLike: one word, long enough, mixed, and not what stands for a value.
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
