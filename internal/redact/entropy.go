package redact

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// HighEntropy masks in an output field what can hardly be anything but a credential or a blob, and says so: a JSON Web
// Token becomes its subject and expiry, a key its first eight characters, base64 of 40 characters and more its size.
//
// Length and alphabet are not enough: version strings, host names, paths, URLs, hashes, UUIDs and identifiers would be
// hit (F-058 read literally). What counts as base64 must also be as mixed as random text, see random.
func HighEntropy(s string) (masked string, found bool) {
	if len(s) < shortestKey {
		return s, false
	}
	var b strings.Builder
	done := 0
	for {
		start, end, with := nextBlob(s, done)
		if with == "" {
			break
		}
		b.WriteString(s[done:start])
		b.WriteString(with)
		done, found = end, true
	}
	if !found {
		return s, false
	}
	b.WriteString(s[done:])
	return b.String(), true
}

const (
	shortestKey  = 15 // xoxb- and ten more
	shortestBlob = 40
)

func nextBlob(s string, low int) (start, end int, with string) {
	start, end, kind := findFormat(s, low)
	if kind == "" {
		return findBase64(s, low, len(s))
	}
	if start, end, with := findBase64(s, low, start); with != "" {
		return start, end, with
	}
	switch kind {
	case "jwt":
		return start, end, tokenSummary(s[start:end])
	case "private-key":
		return start, end, "[KEY: PEM private key]"
	}
	return start, end, "[KEY: " + s[start:start+8] + "...]"
}

// tokenSummary shows who a token is for and until when. A subject that is itself a secret, or too strange to print, is
// left out.
func tokenSummary(token string) string {
	var claims struct {
		Sub string  `json:"sub"`
		Exp float64 `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = json.Unmarshal(raw, &claims) // a claim of another type is as good as none
	}
	sub, exp := "?", "?"
	if claims.Sub != "" && len(claims.Sub) <= 64 && printable(claims.Sub) && String(claims.Sub) == claims.Sub {
		if _, hit := HighEntropy(claims.Sub); !hit {
			sub = claims.Sub
		}
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

// findBase64 is the first run of base64 between low and high. It looks at every fortieth byte and back from there: in
// text there is always a space on the way.
func findBase64(s string, low, high int) (start, end int, with string) {
	start = low
	for start+shortestBlob <= high {
		probe := start + shortestBlob - 1
		for probe >= start && base64Byte(s[probe]) {
			probe--
		}
		if probe >= start {
			start = probe + 1
			continue
		}
		end = start + shortestBlob
		for end < high && base64Byte(s[end]) {
			end++
		}
		first, last := trim(s, start, end)
		if last-first >= shortestBlob && random(s[first:last]) && !excused(s, low, first, last) {
			size := (last - first) * 3 / 4
			for pad := 0; pad < 2 && last < high && s[last] == '='; pad++ {
				last++
			}
			return first, last, "[BASE64: " + strconv.Itoa(size) + " bytes]"
		}
		start = end
	}
	return 0, 0, ""
}

func base64Byte(c byte) bool { return alnum(c) || c == '+' || c == '/' || c == '-' || c == '_' }

// trim leaves out a dash or two that belong to the text.
func trim(s string, from, to int) (start, end int) {
	start, end = from, to
	for start < end && (s[start] == '-' || s[start] == '_') {
		start++
	}
	for end > start && s[end-1] == '-' {
		end--
	}
	if end-start < shortestBlob { // then they may be what makes it long enough
		return from, to
	}
	return start, end
}

// random: could the text be random base64? Three things tell it from words, paths and identifiers. Its neighbours
// differ in kind (small, capital, digit) six times in ten, where words do so one time in four. It has few runs of four
// small letters, where words are made of them. And it has no parts of one kind between its slashes and dashes. The
// limits let pass about one random string of 40 in 500, and fewer of the longer ones.
func random(s string) bool {
	var counts [128]int
	var uppers, lowers, digits, symbols, changes, inWords, run, part, plainParts int
	kinds, previous := 0, byte(0)
	endPart := func() {
		if part >= 3 && (kinds&(kinds-1) == 0) {
			plainParts += part
		}
		part, kinds = 0, 0
	}
	for i := range len(s) {
		c, kind := s[i], byte(0)
		counts[c]++
		switch {
		case lower(c):
			kind, lowers = 1, lowers+1
		case upper(c):
			kind, uppers = 2, uppers+1
		case digit(c):
			kind, digits = 4, digits+1
		default:
			symbols++
		}
		if kind == 0 {
			endPart()
		} else {
			part, kinds = part+1, kinds|int(kind)
		}
		if kind != previous {
			changes++
		}
		if kind == 1 {
			if run++; run == 4 {
				inWords += 4
			} else if run > 4 {
				inWords++
			}
		} else {
			run = 0
		}
		previous = kind
	}
	endPart()
	n := len(s)
	least := 0.42
	if n >= 128 { // zeroes in a file are a run of A
		least = 0.30
	}
	return uppers >= 3 && lowers >= 3 && digits >= 1 && symbols <= n/16+4 &&
		float64(changes) >= least*float64(n) && inWords*5 <= n*2 && plainParts*3 <= n && entropy(&counts, n) >= 4.2
}

// entropy in bits a character, after Shannon.
func entropy(counts *[128]int, n int) float64 {
	bits := 0.0
	for _, count := range counts {
		if count > 0 {
			p := float64(count) / float64(n)
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// excused: the run is part of something that is allowed to look random: a URL, a path, a hash with its name, a cursor
// of our own.
func excused(s string, low, start, end int) bool {
	from := start
	for from > low && start-from < 2048 && !space(s[from-1]) && strings.IndexByte("\"'`<>()[]{},;", s[from-1]) < 0 {
		from--
	}
	before := s[from:start]
	if strings.Contains(before, "://") || strings.HasSuffix(before, ":") && strings.HasPrefix(s[start:end], "//") ||
		strings.Contains(before, `:\`) || strings.HasSuffix(before, "c1.") && boundary(s, start-len("c1.")) {
		return true
	}
	if hashName(before) || hashName(firstPart(s[start:end])) {
		return true
	}
	return pathLike(s[from:end])
}

// firstPart is the text up to and with the first dash: sha512- in the integrity of a package.
func firstPart(s string) string {
	return s[:strings.IndexByte(s, '-')+1]
}

// hashName: sha256:, SHA512-, h1: (go.sum), md5=.
func hashName(before string) bool {
	if before == "" || strings.IndexByte(":-=", before[len(before)-1]) < 0 {
		return false
	}
	name := strings.ToLower(before[:len(before)-1])
	if cut := strings.LastIndexAny(name, ":=./@"); cut >= 0 {
		name = name[cut+1:]
	}
	switch name {
	case "sha1", "sha224", "sha256", "sha384", "sha512", "md5", "h1", "blake2b", "blake3", "sha-256", "sha-512":
		return true
	}
	return false
}

// pathLike: the word begins like a path: ./ ../ ~/ or a first directory in letters of one kind. Of three letters only
// directories that are common: in base64 three small letters before a slash are not rare enough.
func pathLike(word string) bool {
	if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") || strings.HasPrefix(word, "~/") {
		return true
	}
	first, _, ok := strings.Cut(strings.TrimPrefix(word, "/"), "/")
	if !ok {
		return false
	}
	switch first {
	case "api", "app", "bin", "cmd", "dev", "doc", "etc", "lib", "mnt", "opt", "pkg", "run", "src", "sys", "tmp", "usr",
		"var", "www":
		return true
	}
	if len(first) < 4 {
		return false
	}
	for i := 1; i < len(first); i++ {
		if !lower(first[i]) && first[i] != '.' && first[i] != '-' {
			return false
		}
	}
	return lower(first[0]) || upper(first[0]) || first[0] == '.'
}
