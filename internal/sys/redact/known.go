package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// leastKnown is the length from which a value is masked everywhere. A shorter one is part of too many words: masking a
// key "k" would remove every letter k of a journal. 8 is also the least length of a password in Credentials; the keys
// of every vendor have 20 and more.
const leastKnown = 8

// piece is the length of the parts by which a long value is recognised, such as a line of a private key.
const piece = 64

// codedPiece is the same for encoded values: nine bytes of a value in base64, six in hexadecimal digits.
const codedPiece = 12

// Values are known secrets: the key in use, or the value of a variable. They are masked by value, in any text, and also
// if encoded: in base64 at each of its three offsets, with percent signs, in hexadecimal digits, or with JSON escapes.
// A nil *Values knows none. It is read-only, so it may be used concurrently.
//
// It refuses values shorter than eight bytes, and does not find what is hidden on purpose, such as a value reversed or
// printed one character a line.
type Values struct {
	pairs   [1 << 10]uint64     // first two bytes of any spelling
	index   map[string][]string // spellings by their first four bytes, the longest first
	begins  map[string]bool     // their first one, two and three bytes
	longest int
}

// Known returns Values for secrets, or nil if none of them is long enough.
func Known(values ...string) *Values {
	v := &Values{index: map[string][]string{}, begins: map[string]bool{}}
	for _, value := range values {
		value = strings.TrimSpace(value)
		for _, spelt := range spellings(value) {
			for _, part := range pieces(spelt, piece) {
				v.add(part)
			}
		}
		for _, coded := range encodings(value) { // encoders break lines anywhere
			for _, part := range pieces(coded, codedPiece) {
				v.add(part)
			}
		}
	}
	if v.longest == 0 {
		return nil
	}
	for _, list := range v.index {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return v
}

func (v *Values) add(part string) {
	if len(part) < leastKnown || slices.Contains(v.index[part[:4]], part) || strings.Contains(Mask, part) {
		return
	}
	v.index[part[:4]] = append(v.index[part[:4]], part)
	for n := 1; n <= 3; n++ {
		v.begins[part[:n]] = true
	}
	at := uint(part[0])<<8 | uint(part[1])
	v.pairs[at>>6] |= 1 << (at & 63)
	v.longest = max(v.longest, len(part))
}

// spellings returns the forms in which a value is searched for.
func spellings(value string) []string {
	if len(value) < leastKnown {
		return nil
	}
	all := []string{value, url.QueryEscape(value), url.PathEscape(value)}
	for _, escaped := range all[1:3] {
		all = append(all, lowerEscapes(escaped))
	}
	for _, html := range []bool{true, false} {
		inner := value
		for range nested {
			inner = escaped(inner, html)
			all = append(all, inner)
		}
	}
	for line := range strings.Lines(value) { // a multi-line key is often printed with a prefix on each line
		if line = strings.TrimSpace(line); len(line) >= 20 && line != value && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// nested is how deep a text of JSON may be in texts of JSON, as the arguments of a call are in an event.
const nested = 3

// escaped returns a text as it is in a text of JSON.
func escaped(s string, html bool) string {
	var quoted strings.Builder
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(s); err != nil {
		return s
	}
	inner := strings.TrimSuffix(quoted.String(), "\n")
	return inner[1 : len(inner)-1]
}

// encodings returns the value in base64 and in hexadecimal digits.
func encodings(value string) []string {
	if len(value) < leastKnown {
		return nil
	}
	all := []string{hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for offset := range 3 {
		padded := append(make([]byte, offset), value...)
		// Characters at both ends that depend on the neighbours of the value are left out.
		from, to := []int{0, 2, 3}[offset], len(padded)*8/6
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, alphabet.EncodeToString(padded)[from:to])
		}
	}
	return all
}

// lowerEscapes writes %2B as %2b.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

// pieces splits a long spelling.
func pieces(s string, length int) []string {
	var all []string
	for len(s) >= 2*length {
		all, s = append(all, s[:length]), s[length:]
	}
	return append(all, s)
}

// next returns the first spelling at or after from; start is -1 without a match.
func (v *Values) next(s string, from int) (start, end int) {
	for i := from; i+leastKnown <= len(s); i++ {
		at := uint(s[i])<<8 | uint(s[i+1])
		if v.pairs[at>>6]>>(at&63)&1 == 0 {
			continue
		}
		for _, part := range v.index[s[i:i+4]] {
			if strings.HasPrefix(s[i:], part) {
				return i, i + len(part)
			}
		}
	}
	return -1, -1
}

// String returns the text without the values.
func (v *Values) String(s string) string {
	masked, _ := v.Count(s)
	return masked
}

// Bytes is String for bytes. It returns b itself if it has no secret.
func (v *Values) Bytes(b []byte) []byte {
	if v == nil {
		return b
	}
	if masked, n := v.Count(string(b)); n > 0 {
		return []byte(masked)
	}
	return b
}

// Count is String, and also returns how many places were masked.
func (v *Values) Count(s string) (masked string, n int) {
	if v == nil {
		return s, 0
	}
	start, end := v.next(s, 0)
	if start < 0 {
		return s, 0
	}
	var b strings.Builder
	done := 0
	for ; start >= 0; start, end = v.next(s, done) {
		if start > done || n == 0 { // else it is the next part of the same
			b.WriteString(s[done:start])
			b.WriteString(Mask)
			n++
		}
		done = end
	}
	b.WriteString(s[done:])
	return b.String(), n
}

// Stream returns a masker for a text that comes in pieces.
func (v *Values) Stream() *Stream { return &Stream{values: v} }

// Stream holds back what may be the beginning of a value until that is known. It is for one text, and one goroutine.
type Stream struct {
	values *Values
	held   string
	masked int
	after  bool // the last output was a mask: the next part of the same secret needs no other
}

// Use masks other values from now on.
func (s *Stream) Use(v *Values) { s.values = v }

// Masked returns how many places were masked so far.
func (s *Stream) Masked() int { return s.masked }

// Feed takes the next piece, and returns what is safe so far.
func (s *Stream) Feed(text string) string {
	if s.values == nil {
		return s.End() + text
	}
	text, n := s.values.Count(s.held + text)
	s.masked += n
	at := s.values.open(text)
	text, s.held = text[:at], text[at:]
	if s.after && n > 0 {
		text = strings.TrimPrefix(text, Mask)
	}
	if text != "" {
		s.after = n > 0 && strings.HasSuffix(text, Mask)
	}
	return text
}

// End returns what was held back, at the end of the text.
func (s *Stream) End() string {
	text := s.held
	s.held = ""
	return text
}

// open returns the start of the longest suffix that may begin a spelling.
func (v *Values) open(text string) int {
	for i := max(0, len(text)-v.longest+1); i < len(text); i++ {
		rest := text[i:]
		if len(rest) < 4 {
			if v.begins[rest] {
				return i
			}
			continue
		}
		if slices.ContainsFunc(v.index[rest[:4]], func(part string) bool { return strings.HasPrefix(part, rest) }) {
			return i
		}
	}
	return len(text)
}

// Secrets returns the secret values of an environment: of variables with a secret name or a value in a well-known
// format, and the passwords in addresses. An ordinary word, number, path or address does not count, since it would be
// masked in every text that contains it.
func Secrets(environ []string) []string {
	var all []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		value = strings.TrimSpace(value)
		if password, ok := passwordOf(value); ok {
			if rare(password) {
				all = append(all, password)
			}
			continue
		}
		if _, known := LooksSecret(value); known || Name(name) && rare(value) {
			all = append(all, value)
		}
	}
	return all
}

// passwordOf returns the password of an address.
func passwordOf(value string) (password string, is bool) {
	if !strings.Contains(value, "://") {
		return "", false
	}
	u, err := url.Parse(value)
	if err != nil {
		return "", false
	}
	password, _ = u.User.Password()
	return password, true
}

// rare reports whether a text is unlikely to contain the value by chance.
func rare(value string) bool {
	if len(value) < leastKnown || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~") ||
		strings.HasPrefix(value, "./") || len(value) > 2 && value[1] == ':' && (value[2] == '\\' || value[2] == '/') {
		return false
	}
	var kinds [4]bool // digits, small letters, capitals, others
	for i := range len(value) {
		switch c := value[i]; {
		case digit(c):
			kinds[0] = true
		case lower(c):
			kinds[1] = true
		case upper(c):
			kinds[2] = true
		case c < ' ' && c != '\n' && c != '\r' && c != '\t':
			return false
		default:
			kinds[3] = true
		}
	}
	different := 0
	for _, has := range kinds {
		if has {
			different++
		}
	}
	if host, number, ok := strings.Cut(value, ":"); ok && host != "" && port(number) && len(number) <= 5 {
		return false
	}
	return different >= 2 && (kinds[0] || kinds[3] && different >= 3 || len(value) >= 20) || len(value) >= 24
}
