package redact

// Name reports whether a field, flag or variable of this name holds a secret.
//
// The name is split into words (snake, kebab, camel, dots), so that author is not auth and tokenizer is not token. Case
// and the style of separation do not matter. A secret word is outweighed by what follows it (token_limit, auth_methods,
// key_name, password-from-env: they describe a secret, they do not hold one) and by what leads it (has_token,
// requires_auth, page_token).
func Name(name string) bool {
	if !promising(name) {
		return false
	}
	var lowered [64]byte
	var marks [16]word
	text, words := split(name, lowered[:0], marks[:0])
	at := func(i int) []byte { return text[words[i].start:words[i].end] }
	last := len(words) - 1
	if last > 0 && (describes(at(last)) || asks(at(0))) {
		return false
	}
	if last > 0 && string(at(0)) == "api" { // API_*: F-051
		return true
	}
	for i := range words {
		var before []byte
		if i > 0 {
			before = at(i - 1)
		}
		if secretWord(at(i), before, i == last) {
			return true
		}
	}
	return false
}

// promising rules out most names by pairs of letters, which saves splitting them; a JSON text is full of names. Every
// word of secretWord, and api, has one of these pairs.
func promising(name string) bool {
	for i := 1; i < len(name); i++ {
		switch [2]byte{name[i-1] | 0x20, name[i] | 0x20} {
		case [2]byte{'k', 'e'}, // token, key
			[2]byte{'b', 'e'}, // bearer
			[2]byte{'c', 'r'}, // secret, credential
			[2]byte{'s', 's'}, // password
			[2]byte{'u', 't'}, // auth
			[2]byte{'k', 'i'}, // cookie
			[2]byte{'w', 'd'}, // pwd
			[2]byte{'j', 'w'}, // jwt
			[2]byte{'a', 'p'}: // api
			return true
		}
	}
	return false
}

// word is a range of the lowered text.
type word struct{ start, end int }

// split lowers the name into text and marks its words. Digits at the end of a word are left out (token2, oauth2), and
// digits alone do not count as a word.
func split(name string, text []byte, words []word) ([]byte, []word) {
	start := 0
	flush := func() {
		end := len(text)
		for end > start && text[end-1] >= '0' && text[end-1] <= '9' {
			end--
		}
		if end > start {
			words = unglue(text, words, word{start, end})
		}
		start = len(text)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			// fooBar, and the last capital of HTTPServer.
			if i > 0 && (!upper(name[i-1]) || i+1 < len(name) && lower(name[i+1])) {
				flush()
			}
			text = append(text, c+'a'-'A')
		case lower(c) || digit(c) || c >= 0x80:
			text = append(text, c)
		default:
			flush()
		}
	}
	flush()
	return text, words
}

// unglue splits words that are usually written as one: apikey, authtoken, pgpassword, publickey. It also joins what
// camel case separates: OAuth.
func unglue(text []byte, words []word, w word) []word {
	s := text[w.start:w.end]
	if n := len(words); n > 0 && string(s) == "auth" && words[n-1].end-words[n-1].start == 1 &&
		text[words[n-1].start] == 'o' {
		words[n-1] = w
		return words
	}
	cut := 0
	for _, tail := range [...]string{"password", "passwd", "passphrase", "secret", "token", "apikey", "apikeys"} {
		if len(s) > len(tail) && string(s[len(s)-len(tail):]) == tail {
			cut = len(s) - len(tail)
		}
	}
	for _, tail := range [...]string{"key", "keys", "tokens"} {
		if head := len(s) - len(tail); head > 0 && string(s[head:]) == tail &&
			(keyKind(s[:head]) || publicKey(s[:head]) || tokenKind(s[:head]) || quantity(s[:head])) {
			cut = head
		}
	}
	if cut > 0 {
		return append(words, word{w.start, w.start + cut}, word{w.start + cut, w.end})
	}
	return append(words, w)
}

// secretWord judges a word by itself and by the word before it.
func secretWord(w, before []byte, last bool) bool {
	switch string(w) {
	case "secret", "secrets", "password", "passwords", "passwd", "passwds", "pass", "passphrase", "passphrases",
		"passcode",
		"credential", "credentials", "cred", "creds", "auth", "auths", "oauth", "authorization", "cookie", "cookies",
		"apikey", "apikeys", "bearer", "jwt":
		return true
	case "token":
		return !quantity(before)
	case "tokens": // in this program mostly a number: max_tokens, input_tokens
		return tokenKind(before)
	case "keys":
		return keyKind(before)
	case "key":
		return keyKind(before) || last && len(before) > 0 && !publicKey(before) // *_KEY: F-051
	case "pwd": // PWD and OLDPWD are directories
		switch string(before) {
		case "mysql", "db", "database", "user", "admin", "root":
			return true
		}
	}
	return false
}

// describes: last words that make the name one about a secret.
func describes(w []byte) bool {
	switch string(w) {
	case "count", "counts", "limit", "limits", "offset", "offsets", "length", "size", "rate", "budget", "usage", "used",
		"window",
		"remaining", "total", "max", "min", "cost", "price", "bucket", "index", "position", "ids", "estimate",
		"details",
		"type", "types", "kind", "method", "methods", "mode", "modes", "scheme", "format", "pattern", "name", "names",
		"ref", "refs",
		"env", "var", "vars", "variable", "variables", "file", "files", "path", "paths", "dir", "store", "storage",
		"backend", "helper",
		"source", "provider", "providers", "command", "commands", "prompt", "hint", "help",
		"status", "state", "required", "supported", "available", "present", "valid", "enabled", "disabled", "error",
		"errors", "level",
		"version", "versions", "url", "urls", "base", "endpoint", "host", "port", "region", "model", "timeout",
		"retries", "requests",
		"calls", "request", "response", "ms", "seconds", "duration", "ttl", "age", "expiry", "expires", "expiration",
		"expired", "at",
		"in", "through", "fds":
		return true
	}
	return false
}

// asks: first words of a name that is a question about a secret, or says what to do with secrets.
func asks(w []byte) bool {
	switch string(w) {
	case "has", "is", "no", "requires", "require", "needs", "supports", "without", "missing", "mask", "unmask",
		"redact":
		return true
	}
	return false
}

// keyKind: a key of this kind is a secret wherever it stands in the name.
func keyKind(w []byte) bool {
	switch string(w) {
	case "api", "private", "access", "secret", "signing", "encryption", "decryption", "ssh", "client", "license",
		"licence", "auth",
		"oauth", "master", "account", "session", "service", "deploy", "shared", "gpg", "pgp", "rsa", "aes", "hmac",
		"webhook", "admin":
		return true
	}
	return false
}

// publicKey: a key of this kind is an ordinary value.
func publicKey(w []byte) bool {
	switch string(w) {
	case "idempotency", "primary", "public", "foreign", "sort", "partition", "cache", "config", "missing", "unknown",
		"map", "object",
		"lookup", "group", "dedupe", "dedup", "natural", "unique", "composite", "hot", "shortcut", "json", "field",
		"row", "column",
		"routing", "translation", "label", "env", "parent", "index", "host", "registry", "setting", "metadata", "any",
		"each", "by":
		return true
	}
	return false
}

// tokenKind: tokens of this kind grant something.
func tokenKind(w []byte) bool {
	switch string(w) {
	case "access", "api", "auth", "oauth", "refresh", "bearer", "secret", "session", "id", "personal", "csrf", "xsrf",
		"login",
		"private", "security", "service", "bot", "deploy", "device", "client", "github", "gitlab", "slack", "npm", "hf":
		return true
	}
	return false
}

// quantity: what stands before token when it is text or a place in a list.
func quantity(w []byte) bool {
	switch string(w) {
	case "page", "cursor", "next", "continuation", "per", "stop", "eos", "bos", "pad", "unk", "sep", "end", "start",
		"first", "last",
		"special", "unexpected", "each", "max", "min", "input", "output", "total", "prompt", "completion", "cached",
		"reasoning":
		return true
	}
	return false
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }
func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }
func alnum(c byte) bool { return upper(c) || lower(c) || digit(c) }
func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
