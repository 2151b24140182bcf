package webpage

import (
	"bytes"
	"encoding/binary"
	"mime"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// mediaOf splits a content type.
func mediaOf(header string) (media, charset string) {
	media, parameters, err := mime.ParseMediaType(header)
	if err != nil { // many servers send slightly invalid ones
		media, _, _ = strings.Cut(header, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		if at := strings.Index(strings.ToLower(header), "charset="); at >= 0 {
			charset = strings.Trim(header[at+len("charset="):], `"' ;`)
		}
	} else {
		charset = parameters["charset"]
	}
	if media, _ = cleanName(media); !strings.Contains(media, "/") {
		media = ""
	}
	return media, charset
}

// cleanName returns a name without spaces and non-ASCII characters, or "". ok reports whether it is plausible.
func cleanName(s string) (string, bool) {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return "", false
		}
	}
	return s, len(s) < 100
}

// binaryMedia reports whether a media type is certainly not text.
func binaryMedia(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	switch kind {
	case "image":
		return media != "image/svg+xml"
	case "audio", "video", "font", "model":
		return true
	}
	switch media {
	case "application/pdf", "application/zip", "application/gzip", "application/x-gzip", "application/x-tar",
		"application/x-7z-compressed",
		"application/x-bzip2", "application/x-xz", "application/wasm", "application/java-archive",
		"application/vnd.rar":
		return true
	}
	return strings.HasPrefix(media, "application/vnd.openxmlformats") || strings.HasPrefix(media, "application/vnd.ms-")
}

const sniffed = 1024 // bytes that are examined

func looksBinary(body []byte, charset string) bool {
	if _, wide := wideOf(body, charset); wide {
		return false
	}
	return bytes.IndexByte(body[:min(len(body), sniffed)], 0) >= 0
}

// wideOf reports whether text has two bytes a character, and in which order.
func wideOf(body []byte, charset string) (order binary.ByteOrder, wide bool) {
	switch {
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		return binary.LittleEndian, true
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return binary.BigEndian, true
	}
	switch strings.ToLower(charset) {
	case "utf-16", "utf-16le":
		return binary.LittleEndian, true
	case "utf-16be":
		return binary.BigEndian, true
	}
	return nil, false
}

// decode converts a body to UTF-8. A byte order mark has precedence, then the server's charset, then the page's own,
// then a guess. unknown is the name of an unsupported charset. cut: the body may end in the middle of a character.
func decode(body []byte, charset string, cut bool) (text, unknown string) {
	if order, wide := wideOf(body, charset); wide {
		return decodeWide(body, order), ""
	}
	if marked, ok := bytes.CutPrefix(body, []byte("\xef\xbb\xbf")); ok {
		return strings.ToValidUTF8(string(marked), "\uFFFD"), ""
	}
	if charset == "" {
		charset = declared(body[:min(len(body), sniffed)])
	}
	switch strings.ToLower(charset) {
	case "iso-8859-1", "iso8859-1", "iso-8859-15", "latin1", "latin-1", "l1", "windows-1252", "cp1252", "us-ascii",
		"ascii":
		if !utf8.Valid(body) || ascii(body) { // as declared; but many declare it and send UTF-8
			return decodeWestern(body), ""
		}
	case "", "utf-8", "utf8", "unicode-1-1-utf-8":
		if cut {
			body = body[:len(cutAt(string(body), len(body)))]
		}
		if charset == "" && !utf8.Valid(body) {
			return decodeWestern(body), ""
		}
	default:
		if !ascii(body) {
			unknown = charset
		}
	}
	return strings.ToValidUTF8(string(body), "\uFFFD"), unknown
}

func ascii(body []byte) bool {
	return !slices.ContainsFunc(body, func(c byte) bool { return c >= utf8.RuneSelf })
}

func decodeWide(body []byte, order binary.ByteOrder) string {
	units := make([]uint16, 0, len(body)/2)
	for ; len(body) >= 2; body = body[2:] {
		units = append(units, order.Uint16(body))
	}
	return strings.TrimPrefix(string(utf16.Decode(units)), "\uFEFF")
}

// decodeWestern reads Windows-1252, which is what Latin-1 means on the web.
func decodeWestern(body []byte) string {
	const upper = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	table := []rune(upper)
	var b strings.Builder
	b.Grow(len(body) + len(body)/8)
	for _, c := range body {
		if c >= 0x80 && c < 0xa0 {
			b.WriteRune(table[c-0x80])
			continue
		}
		b.WriteRune(rune(c))
	}
	return b.String()
}

// declared returns the charset that the page itself declares.
func declared(head []byte) string {
	if rest, ok := bytes.CutPrefix(head, []byte("<?xml")); ok {
		if declaration, _, ok := bytes.Cut(rest, []byte("?>")); ok {
			if _, value, ok := bytes.Cut(declaration, []byte("encoding=")); ok && len(value) > 2 {
				name, _, _ := bytes.Cut(value[1:], value[:1])
				return string(name)
			}
		}
	}
	for z := newScanner(string(head)); ; {
		t, ok := z.next()
		if !ok {
			return ""
		}
		if t.kind != startTag || t.name != "meta" {
			continue
		}
		if t.attributes["charset"] != "" {
			return strings.TrimSpace(t.attributes["charset"])
		}
		if strings.EqualFold(t.attributes["http-equiv"], "content-type") {
			_, charset := mediaOf(t.attributes["content"])
			return charset
		}
	}
}

// isHTML reports whether a page is parsed as HTML.
func isHTML(media, body string) bool {
	switch media {
	case "text/html", "application/xhtml+xml":
		return true
	case "text/plain", "", "application/octet-stream":
		head := strings.ToLower(strings.TrimSpace(body[:min(len(body), sniffed)]))
		return media == "" && (strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html"))
	}
	return false
}

// cutAt returns the beginning of a text, at most that many bytes, without half a character.
func cutAt(s string, most int) string {
	s = s[:min(len(s), most)]
	for back := 1; back <= min(utf8.UTFMax-1, len(s)); back++ {
		if c := s[len(s)-back]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-back:]) {
				return s[:len(s)-back]
			}
			break
		}
	}
	return s
}
