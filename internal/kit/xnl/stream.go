package xnl

import "bytes"

// Stream finds nodes in a text that comes in pieces, each as soon as it is whole. The time is linear in the text,
// however it is cut.
type Stream struct {
	text   []byte // from the beginning of the open node, or what cannot be decided yet
	at     int    // what has been looked at
	depth  int    // nodes that are open; 0: between nodes
	state  state
	quote  byte // that closes the string
	closer []byte
}

// state is what the next byte of an open node belongs to.
type state uint8

const (
	inNode state = iota
	inString
	inComment
	inMarker // after "#"
	inText   // raw, until closer
)

// Feed takes the next piece and returns the nodes that it completes. The error is an *Error, with places counted from
// the beginning of the node; after it the stream is of no more use.
func (s *Stream) Feed(piece string) (nodes []*Node, err error) {
	s.text = append(s.text, piece...)
	for {
		if s.depth == 0 && !s.begin() {
			return nodes, s.stray()
		}
		if !s.finish() {
			return nodes, nil
		}
		n, _, err := ParseSingle(string(s.text[:s.at]))
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
		s.text, s.at = s.text[s.at:], 0
	}
}

// End returns the nodes of the rest, such as those with closing markers of the first dialect, or why it has none.
func (s *Stream) End() ([]*Node, error) {
	nodes, _, err := Parse(string(s.text))
	return nodes, err
}

// begin passes blanks and comments, and reports whether a node begins.
func (s *Stream) begin() bool {
	for {
		s.text = bytes.TrimLeft(s.text, " \t\r\n")
		if !bytes.HasPrefix(s.text, []byte("<!--")) {
			break
		}
		s.at = max(s.at, len("<!--"))
		if !s.pass([]byte("-->")) {
			return false
		}
		s.text, s.at = s.text[s.at:], 0
	}
	if len(s.text) < 2 || s.text[0] != '<' || !nameStart(s.text[1]) {
		return false
	}
	s.at, s.depth, s.state = 1, 1, inNode
	return true
}

// stray returns the error of a text that cannot become a node; nil if it can.
func (s *Stream) stray() error {
	if open := []byte("<!--"); bytes.HasPrefix(open, s.text) || bytes.HasPrefix(s.text, open) {
		return nil
	}
	_, _, err := Parse(string(s.text))
	return err
}

// finish looks at bytes until the node ends. False: more are needed.
func (s *Stream) finish() bool {
	for s.depth > 0 {
		on := false
		switch s.state {
		case inNode:
			on = s.structure()
		case inString:
			on = s.string()
		case inComment:
			on = s.pass([]byte("-->"))
			s.leave(on)
		case inMarker:
			on = s.marker()
		case inText:
			if on = s.pass(s.closer); on {
				s.depth--
			}
			s.leave(on)
		}
		if !on {
			return false
		}
	}
	return true
}

func (s *Stream) leave(done bool) {
	if done {
		s.state = inNode
	}
}

// pass goes behind the next occurrence of a text, if that has come.
func (s *Stream) pass(end []byte) bool {
	if i := bytes.Index(s.text[s.at:], end); i >= 0 {
		s.at += i + len(end)
		return true
	}
	s.at = max(s.at, len(s.text)-len(end)+1)
	return false
}

// structure looks at bytes between strings, comments and raw text, until one of those begins or a node ends.
func (s *Stream) structure() bool {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case '"', '\'':
			s.quote, s.state = c, inString
		case '#':
			s.state = inMarker
		case '>':
			s.depth--
			s.at++
			return true
		case '<':
			rest := s.text[s.at:]
			switch open := []byte("<!--"); {
			case bytes.HasPrefix(rest, open):
				s.state = inComment
				s.at += len(open)
				return true
			case bytes.HasPrefix(open, rest):
				return false
			}
			s.depth++
			continue
		default:
			continue
		}
		s.at++
		return true
	}
	return false
}

func (s *Stream) string() bool {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '\\':
			if s.at+1 == len(s.text) {
				return false
			}
			s.at++
		case s.quote:
			s.at++
			s.state = inNode
			return true
		}
		s.at++
	}
	return false
}

// marker reads the marker between "#" and ">". Where there is none, the parser says what is wrong.
func (s *Stream) marker() bool {
	start := s.at
	for end := start; end < len(s.text); end++ {
		switch c := s.text[end]; {
		case c == '>':
			s.closer = append(append([]byte("</#"), s.text[start:end]...), '>')
			s.at, s.state = end+1, inText
			return true
		case !nameByte(c):
			s.state = inNode
			return true
		}
	}
	return false
}
