package tool

import (
	"bytes"
	"path"
	"strings"
)

// sniffed is the number of bytes that decide the type of a file.
const sniffed = 8 << 10

// content is the type of a file, judging by its beginning.
type content struct {
	image    string // media type
	binary   string // its type, if it cannot be shown
	hint     string
	notebook bool
	wide     bool // UTF-16
}

// sniff examines the beginning of a file. The name only matters for notebooks.
func sniff(name string, head []byte) content {
	starts := func(with string) bool { return bytes.HasPrefix(head, []byte(with)) }
	switch {
	case starts("\x89PNG\r\n\x1a\n"):
		return content{image: "image/png"}
	case starts("\xff\xd8\xff"):
		return content{image: "image/jpeg"}
	case starts("GIF87a"), starts("GIF89a"):
		return content{image: "image/gif"}
	case starts("RIFF") && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return content{image: "image/webp"}
	case starts("%PDF-"):
		return content{
			binary: "a PDF document",
			hint:   "Turn it into text with Bash, for example with pdftotext, and read that.",
		}
	case starts(mark16LE), starts(mark16BE):
		return content{wide: true}
	case bytes.IndexByte(head, 0) >= 0:
		return content{binary: binaryKind(head), hint: "Look at it with Bash, for example with file, strings or xxd."}
	}
	return content{notebook: strings.EqualFold(path.Ext(name), ".ipynb") &&
		!bytes.HasPrefix(bytes.TrimSpace(head), []byte("version https"))}
}

func binaryKind(head []byte) string {
	for _, known := range [][2]string{
		{"\x7fELF", "an executable"},
		{"MZ", "an executable"},
		{"\xcf\xfa\xed\xfe", "an executable"},
		{"PK\x03\x04", "a ZIP archive"},
		{"\x1f\x8b", "a gzip archive"},
		{"SQLite format 3\x00", "a database"},
		{"\x00asm", "a WebAssembly module"},
	} {
		if bytes.HasPrefix(head, []byte(known[0])) {
			return known[1]
		}
	}
	return "a binary file"
}
