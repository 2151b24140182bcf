package shell

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"omniagent/internal/sys/redact"
)

// stream is one output stream, as text.
type stream struct {
	name      string
	mask      *redact.Stream
	pending   []byte // raw bytes of an unfinished line
	open      bool   // the text ends within a line, which pending continues
	size      int64  // bytes of text
	head      []byte // its beginning; all of it as long as there is no file
	tail      []byte // its end, once it is longer than the head
	file      *os.File
	mentioned bool    // the file was mentioned to somebody
	of        *stream // the stream of which this is a part
	stored    int64   // bytes in the file
	limit     int64   // maximum bytes in the file
	failed    error   // why the file is not complete
}

// characters returns the number of characters; for a stream longer than the head, a number that is too large.
func (s *stream) characters() int {
	if s.size > int64(len(s.head)) {
		return len(s.head)
	}
	return utf8.RuneCount(s.head)
}

func (s *stream) add(text string) {
	s.size += int64(len(text))
	s.open = text[len(text)-1] != '\n'
	if s.file != nil {
		s.store(text)
	}
	room := min(len(text), maxHead-len(s.head))
	if len(s.tail) > 0 {
		room = 0
	}
	s.head = append(s.head, text[:room]...)
	if s.tail = append(s.tail, text[room:]...); len(s.tail) > 2*maxTail {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-maxTail:]...)
	}
}

// spill begins a file with what the stream has so far, which is all in the head.
func (s *stream) spill(to *spills) {
	if s.file != nil || s.failed != nil {
		return
	}
	s.limit = cmp.Or(to.most, maxSpill)
	if s.file, s.failed = to.create(s.name); s.failed == nil {
		s.store(string(s.head))
	}
}

func (s *stream) store(text string) {
	if s.failed != nil {
		return
	}
	text = text[:min(int64(len(text)), s.limit-s.stored)]
	if text == "" {
		return
	}
	n, err := s.file.WriteString(text)
	s.stored, s.failed = s.stored+int64(n), err
}

// end returns the last part in memory.
func (s *stream) end() string {
	if s.size == int64(len(s.head)+len(s.tail)) {
		return string(s.head) + string(s.tail)
	}
	return string(s.tail)
}

// excerpt returns the text, or its beginning and its end with a line between them that says what is missing.
func (s *stream) excerpt(most int) string {
	if s.characters() <= most {
		return string(s.head)
	}
	head, tail := firstLines(string(s.head), most/2), lastLines(s.end(), most-most/2)
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + fmt.Sprintf("[%d of %d bytes are left out here; %s]\n", s.size-int64(len(head))-int64(len(tail)),
		s.size, s.where()) + tail
}

// where describes where the complete output is. Its words are read later too, when the file is gone.
func (s *stream) where() string {
	if s.of != nil {
		return s.of.where()
	}
	if s.file == nil {
		return fmt.Sprintf("they could not be kept: %v", s.failed)
	}
	s.mentioned = true
	in := "in " + s.file.Name() + " until the conversation ends"
	switch {
	case s.stored == s.size:
		return "all of it is " + in
	case s.failed != nil:
		return fmt.Sprintf("the first %d bytes are %s, and no more could be kept: %v", s.stored, in, s.failed)
	}
	return fmt.Sprintf("the first %d bytes are %s", s.stored, in)
}

// nearby is how much less than allowed may be shown so that a cut falls between two lines.
const nearby = 400

// firstLines returns at most so many characters from the beginning of a text, preferably whole lines.
func firstLines(text string, characters int) string {
	end := len(text)
	for i := range text {
		if characters == 0 {
			end = i
			break
		}
		characters--
	}
	if at := strings.LastIndexByte(text[:end], '\n') + 1; end < len(text) && at > 0 && end-at <= nearby {
		end = at
	}
	return text[:end]
}

// lastLines returns the end of a text in the same way.
func lastLines(text string, characters int) string {
	begin := len(text)
	for ; begin > 0 && characters > 0; characters-- {
		_, size := utf8.DecodeLastRuneInString(text[:begin])
		begin -= size
	}
	if at := strings.IndexByte(text[begin:], '\n') + 1; begin > 0 && at > 0 && at <= nearby {
		begin += at
	}
	return text[begin:]
}
