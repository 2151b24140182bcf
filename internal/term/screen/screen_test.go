package screen_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"omniagent/internal/term/cells"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/term/screen"
)

// paper takes what a screen writes.
type paper struct {
	mu sync.Mutex
	bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Buffer.Write(b)
}

// take returns what was written since the last call.
func (p *paper) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.String()
	p.Reset()
	return s
}

func of(columns, rows int) func() (int, int) { return func() (int, int) { return columns, rows } }

func input(s *screen.Screen, text string) lineedit.View {
	e := lineedit.New(lineedit.Options{Prompt: "> "})
	e.Set(text)
	return e.View(s.Width())
}

// TestBytes: a frame has no byte more than the change needs.
func TestBytes(t *testing.T) {
	out := &paper{}
	s := screen.New(screen.Options{Out: out, Size: of(40, 10)})
	step := func(what string, live screen.Live, want string) {
		t.Helper()
		s.Set(live)
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.take(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	idle := screen.Live{Input: input(s, "a")}
	s.Set(idle)
	out.take()
	step("nothing changed", idle, "")
	step("a key", screen.Live{Input: input(s, "ab")}, "b")
	step("a key removed", idle, "\x1b[4G\x1b[K")
	busy := screen.Live{Tail: []string{"some"}, Above: []string{"busy 1s"}, Input: input(s, "a")}
	s.Set(busy)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.take(); !strings.HasPrefix(got, "\x1b[?25l") {
		t.Errorf("the cursor is not parked: %q", got)
	}
	busy.Tail = []string{"some text"}
	step("text", busy, "\x1b7\x1b[?7l\x1b[5G text\x1b[?7h\x1b8")
	busy.Above = []string{"busy 2s"}
	step("a tick", busy, "\x1b7\x1b[?7l\x1b[B\x1b[6G2\x1b[?7h\x1b8")
	s.Set(idle)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.take(); !strings.HasSuffix(got, "\x1b[4G\x1b[?25h") {
		t.Errorf("the cursor is not back: %q", got)
	}
}

// TestBudget: whatever is set how often, what is not text stays within 2 KiB a second and three tenths of the text.
func TestBudget(t *testing.T) {
	for _, rate := range []int{20, 200, 2000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &paper{}
				s := screen.New(screen.Options{Out: out, Size: of(120, 40)})
				tail, text := "", 0
				const seconds = 20
				for i := range seconds * rate {
					tail += "words"
					text += 5
					if i%40 == 39 {
						s.Print(tail)
						tail = ""
					}
					s.Set(screen.Live{
						Tail: []string{tail}, Above: []string{fmt.Sprintf("%d tokens", i), "a task", "another"},
						Input: input(s, "typed before"),
					})
					time.Sleep(time.Second / time.Duration(rate))
				}
				written := len(out.take())
				if most := int(1.3*float64(text)) + 2048*seconds; written > most {
					t.Errorf("%d bytes for %d of text, at most %d", written, text, most)
				}
				_ = s.Close()
				out.take()
				time.Sleep(time.Hour)
				if left := out.take(); left != "" {
					t.Errorf("written while nothing happens: %q", left)
				}
			})
		})
	}
}

// TestReader: for a screen reader there is no control sequence at all, and every change is appended.
func TestReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &paper{}
		s := screen.New(screen.Options{Out: out, Size: of(80, 24), Reader: true})
		for _, text := range []string{"", "h", "hi", "hi there", "hi"} {
			s.Set(screen.Live{Above: []string{"busy"}, Tail: []string{"half a line"}, Input: input(s, text)})
		}
		s.Print(cells.Bold.Of("a finished line"))
		time.Sleep(time.Second)
		view := input(s, "hi")
		view.Below = []string{"a candidate"}
		s.Set(screen.Live{Input: view})
		time.Sleep(time.Minute)
		_ = s.Close()
		want := "> hi there\r\n> hi\r\na finished line\r\na candidate\r\n> hi\r\n"
		if got := out.take(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestPlain: without styles there is none but that of the cursor which is drawn.
func TestPlain(t *testing.T) {
	out := &paper{}
	s := screen.New(screen.Options{Out: out, Size: of(80, 24), Plain: true})
	s.Print(cells.Bold.Of("finished"))
	s.Set(screen.Live{Above: []string{screen.Working("busy", 0, 1)}, Input: input(s, "x")})
	_ = s.Close()
	if got := strings.ReplaceAll(strings.ReplaceAll(out.take(), "\x1b[7m \x1b[m", ""), "\x1b[m",
		""); strings.Contains(got, "m") {
		t.Errorf("%q", got)
	}
}

// model is a terminal with what package screen uses of one. Lines that leave its top are in the scrollback.
type model struct {
	columns, rows int
	above         []string
	grid          [][]string
	row, column   int
	saved         [2]int
	wraps         bool
}

func newModel(columns, rows int) *model {
	m := &model{columns: columns, rows: rows, wraps: true}
	for range rows {
		m.grid = append(m.grid, make([]string, columns))
	}
	return m
}

func (m *model) index() {
	if m.row++; m.row == m.rows {
		m.row--
		m.above = append(m.above, strings.TrimRight(strings.Join(fill(m.grid[0]), ""), " "))
		m.grid = append(m.grid[1:], make([]string, m.columns))
	}
}

func fill(row []string) []string {
	row = slices.Clone(row)
	for i, c := range row {
		if c == "" {
			row[i] = " "
		}
	}
	return row
}

func (m *model) feed(t *testing.T, s string) {
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1b["):
			end := strings.IndexFunc(s[2:], func(r rune) bool { return r >= '@' }) + 2
			m.control(t, s[2:end], s[end])
			s = s[end+1:]
			continue
		case strings.HasPrefix(s, "\x1bD"):
			m.index()
		case strings.HasPrefix(s, "\x1b7"):
			m.saved = [2]int{m.row, m.column}
		case strings.HasPrefix(s, "\x1b8"):
			m.row, m.column = m.saved[0], m.saved[1]
		case s[0] == '\r':
			m.column, s = 0, s[1:]
			continue
		case s[0] == '\n':
			m.index()
			s = s[1:]
			continue
		default:
			if m.column == m.columns && m.wraps {
				m.column = 0
				m.index()
			}
			_, size := utf8.DecodeRuneInString(s)
			m.grid[m.row][min(m.column, m.columns-1)] = s[:size]
			m.column = min(m.column+1, m.columns)
			if !m.wraps {
				m.column = min(m.column, m.columns-1)
			}
			s = s[size:]
			continue
		}
		s = s[2:]
	}
}

func (m *model) control(t *testing.T, parameter string, end byte) {
	n, err := strconv.Atoi(parameter)
	if err != nil {
		n = 1
	}
	clearRow := func(y, from int) { clear(m.grid[y][min(from, m.columns-1):]) }
	switch end {
	case 'A':
		m.row = max(m.row-n, 0)
	case 'B':
		m.row = min(m.row+n, m.rows-1)
	case 'C':
		m.column = min(m.column+n, m.columns-1)
	case 'G':
		m.column = min(n-1, m.columns-1)
	case 'K':
		clearRow(m.row, m.column)
	case 'J':
		clearRow(m.row, m.column)
		for y := m.row + 1; y < m.rows; y++ {
			clearRow(y, 0)
		}
	case 'm':
	case 'h', 'l':
		if parameter == "?7" {
			m.wraps = end == 'h'
		}
	default:
		t.Fatalf("the model does not know %q%c", parameter, end)
	}
}

// lines returns the scrollback and the screen, without blanks at its end.
func (m *model) lines() []string {
	lines := slices.Clone(m.above)
	for _, row := range m.grid {
		lines = append(lines, strings.TrimRight(strings.Join(fill(row), ""), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// TestFrames: after any sequence of frames the terminal has the finished lines, broken where it breaks them, and below
// them the region.
func TestFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(300) {
			random := rand.New(rand.NewPCG(seed, 1))
			columns, rows := 10+random.IntN(50), 6+random.IntN(20)
			m, out := newModel(columns, rows), &paper{}
			s := screen.New(screen.Options{Out: out, Size: of(columns, rows)})
			words := func(most int) string { return strings.Repeat("abc ", 1+random.IntN(max(most/4, 1))) }
			var finished []string
			for range 60 {
				live := screen.Live{Input: input(s, words(2*columns))}
				if random.IntN(2) == 0 {
					live.Tail = []string{words(5 * columns)}
					live.Above = []string{words(columns)}
				}
				if random.IntN(3) == 0 {
					live.Below = []string{words(columns), words(columns)}
				}
				for range random.IntN(3) {
					line := strings.TrimRight(words(3*columns), " ")
					finished = append(finished, cells.Break(line, columns)...)
					s.Print(line)
				}
				s.Set(live)
				if random.IntN(3) == 0 {
					_ = s.Flush()
					m.feed(t, out.take())
					if lines := m.lines(); len(lines) < len(finished) || !equal(lines[:len(finished)], finished) {
						t.Fatalf("seed %d, %d columns: %s", seed, columns, differ(lines, finished))
					}
				}
			}
			_ = s.Close()
			m.feed(t, out.take())
			if lines := m.lines(); !equal(lines, finished) {
				t.Fatalf("seed %d, %d columns, at the end: %s", seed, columns, differ(lines, finished))
			}
		}
	})
}

// differ tells where two lists differ first.
func differ(got, want []string) string {
	for i, line := range got {
		if i >= len(want) || strings.TrimRight(want[i], " ") != strings.TrimRight(line, " ") {
			return fmt.Sprintf("line %d of %d: %q, want %q", i, len(want), got[i:min(i+3, len(got))],
				want[i:min(i+3, len(want))])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(got), len(want))
}

func equal(a, b []string) bool {
	return slices.EqualFunc(a, b,
		func(a, b string) bool { return strings.TrimRight(a, " ") == strings.TrimRight(b, " ") })
}
