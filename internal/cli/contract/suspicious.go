package contract

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// suspicious finds values that a program made up or that try to be more than a name: placeholders that were never
// filled in, escapes that a later layer would decode, ids that are paths. It returns the reason and, if there is one,
// the plain form.
//
// Text is free: a prompt may contain anything but NUL. A path may have .. if its caller wants that (--cwd ..), so only
// what is never intended is refused there.
func suspicious(kind Kind, value string) (reason, corrected string) {
	if strings.ContainsRune(value, 0) {
		return "contains a NUL character", strings.ReplaceAll(value, "\x00", "")
	}
	switch kind {
	case Name, ID, File, Enum, Names, Int, Duration:
	default:
		return "", ""
	}
	if placeholder(value) {
		return "is a placeholder that was never filled in", "" // only the caller knows the value
	}
	if kind != ID && kind != File {
		return "", ""
	}
	if v := strings.ToLower(value); v == "null" || v == "undefined" || v == "none" || v == "nan" {
		return "is the word " + value + ", which stands for no value", ""
	}
	if plain := unescaped(value); plain != value && (kind == ID || dangerousEscape(value)) {
		if reason, _ := suspicious(kind, plain); reason != "" || strings.ContainsAny(plain, "/\\@ ?#&") && kind == ID {
			plain = lastElement(plain)
		}
		return "contains a percent escape", plain
	}
	if kind == ID {
		switch {
		case strings.Contains(value, ".."), strings.ContainsAny(value, `/\`):
			return "contains a path where a name belongs", lastElement(value)
		case strings.ContainsAny(value, "?#&"):
			return "contains a piece of a URL", value[:strings.IndexAny(value, "?#&")]
		case strings.TrimSpace(value) != value || strings.ContainsAny(value, " \t\r\n"):
			return "contains white space", strings.Join(strings.Fields(value), "-")
		}
	}
	if kind == File && strings.ContainsAny(value, "\r\n") {
		return "contains a line break", strings.NewReplacer("\r", "", "\n", "").Replace(value)
	}
	return "", ""
}

// unescaped decodes percent escapes, nested ones too.
func unescaped(v string) string {
	for {
		plain, err := url.PathUnescape(v)
		if err != nil || plain == v {
			return v
		}
		v = plain
	}
}

// dangerousEscape finds the escapes that would change where a path leads; a file may well be named a%20b.
func dangerousEscape(v string) bool {
	v = strings.ToLower(v)
	return slices.ContainsFunc([]string{"%2e", "%2f", "%5c", "%00", "%40", "%25"}, func(escape string) bool {
		return strings.Contains(v, escape)
	})
}

// placeholder recognises <id>, {id}, ${ID}, [id], YOUR_ID and similar.
func placeholder(v string) bool {
	if len(v) > 80 || v == "" || !strings.Contains("<${[yYxX.", v[:1]) { // the first byte rules out most values
		return false
	}
	const forms = `^(<[^<>]*>|\$?\{[^{}]*\}|\{\{.*\}\}|\[[A-Za-z_ -]+\]|(?i:your[_-][a-z_-]+)|(?i:x{3,})|\$[A-Z_]+|` +
		`\.\.\.)$`
	return regexp.MustCompile(forms).MatchString(v)
}

func lastElement(v string) string {
	parts := strings.FieldsFunc(v, func(r rune) bool { return r == '/' || r == '\\' })
	for i := len(parts) - 1; i >= 0; i-- {
		if clean := strings.Trim(parts[i], ". @?#&"); clean != "" {
			return clean
		}
	}
	return ""
}
