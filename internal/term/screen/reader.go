package screen

import (
	"bytes"
	"strings"

	"omniagent/internal/term/cells"
)

// spoken is what was written for a screen reader. Nothing is erased and the cursor never goes back, so a change of the
// input that does not append writes the input again on a line of its own.
type spoken struct {
	input string // what stands on the screen of it
	below string // the candidates that were read out
	open  bool   // the cursor stands behind the input
}

func (p *spoken) paint(s *Screen) {
	var b bytes.Buffer
	text := 0
	if len(s.done) > 0 {
		p.end(&b)
		for _, line := range s.done {
			line = cells.Plain(line)
			b.WriteString(line + "\r\n")
			text += len(line) + 2
		}
		s.done, s.waiting = nil, 0
	}
	if below := cells.Plain(strings.Join(s.live.Input.Below, "\r\n")); below != p.below {
		if p.below = below; below != "" {
			p.end(&b)
			b.WriteString(below + "\r\n")
		}
	}
	input := cells.Plain(strings.Join(s.live.Input.Rows, "\r\n"))
	busy := len(s.live.Tail)+len(s.live.Above) > 0
	switch more, grows := strings.CutPrefix(input, p.input); {
	case !p.open && busy && input == p.input: // what has not changed would be read again behind every line
		s.write(b.Bytes(), text)
		s.frames.painted()
		return
	case !p.open:
		b.WriteString(input)
	case grows:
		b.WriteString(more)
	default:
		p.end(&b)
		b.WriteString(input)
	}
	p.input, p.open = input, input != "" || p.open
	s.frames.painted()
	s.write(b.Bytes(), text)
}

// end ends the line of the input.
func (p *spoken) end(b *bytes.Buffer) {
	if p.open {
		b.WriteString("\r\n")
	}
	p.open = false
}

// newLine leaves the input.
func (p *spoken) newLine(s *Screen) {
	var b bytes.Buffer
	p.end(&b)
	s.write(b.Bytes(), 0)
}
