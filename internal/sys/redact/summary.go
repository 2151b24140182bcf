package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// Summaries replaces well-known secrets in an output field with a description: a JSON Web Token with its subject and
// expiry, a key with its first eight characters.
func Summaries(s string) (masked string, found bool) {
	var b strings.Builder
	done := 0
	for {
		start, end, kind := findFormat(s, done)
		if kind == "" {
			break
		}
		b.WriteString(s[done:start])
		b.WriteString(summary(s[start:end], kind))
		done, found = end, true
	}
	if !found {
		return s, false
	}
	b.WriteString(s[done:])
	return b.String(), true
}

func summary(secret, kind string) string {
	switch kind {
	case "jwt":
		return tokenSummary(secret)
	case "private-key":
		return "[KEY: PEM private key]"
	}
	return "[KEY: " + secret[:8] + "...]"
}

// tokenSummary returns the subject and expiry of a token. A subject that is itself a secret, or not printable, is left
// out.
func tokenSummary(token string) string {
	var claims struct {
		Sub string  `json:"sub"`
		Exp float64 `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = json.Unmarshal(raw, &claims) // claims of another type are ignored
	}
	sub, exp := "?", "?"
	if claims.Sub != "" && len(claims.Sub) <= 64 && printable(claims.Sub) && String(claims.Sub) == claims.Sub {
		sub = claims.Sub
	}
	if claims.Exp > 0 && claims.Exp < 1<<40 {
		exp = time.Unix(int64(claims.Exp), 0).UTC().Format(time.RFC3339)
	}
	return "[JWT: sub=" + sub + ", exp=" + exp + "]"
}

func printable(s string) bool {
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte("@._:|-", s[i]) < 0 {
			return false
		}
	}
	return true
}
