package shim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/sys/process"
	"omniagent/internal/term/terminal"
)

const (
	// firstLook is how much of a piped prompt is read before the agent starts: enough to detect an empty prompt.
	firstLook = 64 << 10
	// mostBlanks limits the white space before a prompt that is relayed.
	mostBlanks = 16 << 20
)

// prompt is the agent's standard input. Only a prompt from --prompt is held in memory as a whole.
type prompt struct {
	length counter   // of what was read before the start; everything, if the agent has a limit
	reader io.Reader // *os.File if the agent can have the file itself
	file   *os.File  // if not nil, the prompt can be read again from the position begin
	begin  int64
	text   *string // from --prompt, if not nil
}

// again returns a reader of the prompt from its beginning.
func (p *prompt) again() (io.Reader, error) {
	switch {
	case p.text != nil:
		return strings.NewReader(*p.text), nil
	case p.file != nil:
		_, err := p.file.Seek(p.begin, io.SeekStart)
		return p.file, err
	}
	return p.reader, nil
}

// readPrompt reads the prompt of a one-shot run and checks it against the agent's limit, so that no agent cuts it
// silently.
func (c *shimCall) readPrompt() error {
	if c.mode != "one-shot" {
		return nil
	}
	limit := c.driver.Matrix(c.install.Version).Limit
	if c.args.Events && c.args.Prompt == nil {
		return nil // start reads it
	}
	if c.args.WithStdin {
		return c.bothPrompts(*c.args.Prompt, limit)
	}
	if c.args.Prompt != nil {
		c.warnUnread()
		return c.typedPrompt(*c.args.Prompt, limit)
	}
	if info, err := c.host.Stdin.Stat(); err == nil && info.Mode().IsRegular() {
		return c.promptFile(limit)
	}
	return c.pipedPrompt(limit)
}

// longestBoth limits what --with-stdin reads for an agent without a limit of its own.
const longestBoth = 64 << 20

// bothPrompts appends standard input to the prompt of -p.
func (c *shimCall) bothPrompts(text string, limit agent.Limit) error {
	if term.IsTerminal(int(c.host.Stdin.Fd())) {
		return fault.New(fault.ArgError, "--with-stdin reads a pipe or a file, and standard input is a terminal").
			Hint(`git diff | omniagent -p "review this" --with-stdin`)
	}
	most := int64(longestBoth)
	if limit.Bytes > 0 {
		most = limit.Bytes
	}
	data, err := io.ReadAll(io.LimitReader(interruptible{c.host.Stdin, c}, most+1))
	if err != nil {
		return unreadable(err)
	}
	if int64(len(data)) > most {
		return fault.New(fault.PromptTooLong, "standard input is longer than %s bytes", grouped(most)).
			Hint("put the text into a file and name it in the prompt")
	}
	if len(bytes.TrimSpace(data)) > 0 {
		text += "\n\n" + string(data)
	}
	return c.typedPrompt(text, limit)
}

// warnUnread warns once if a pipe or a file has text that is not read because of -p.
func (c *shimCall) warnUnread() {
	if c.unread || c.args.Prompt == nil || c.args.WithStdin || !terminal.Unread(c.host.Stdin) {
		return
	}
	c.unread = true
	c.warn("standard input is not read, since -p is given; --with-stdin appends it to the prompt")
}

func (c *shimCall) typedPrompt(text string, limit agent.Limit) error {
	if strings.TrimSpace(text) == "" {
		return fault.New(fault.ArgError, "the prompt is empty").Hint(`omniagent -p "what is to be done"`)
	}
	counter := counter{limit: limit}
	_, _ = counter.Write([]byte(text))
	c.prompt = prompt{text: &text, reader: strings.NewReader(text), length: counter}
	return c.tooLong(counter)
}

func emptyPrompt() error {
	return fault.New(fault.ArgError, "the prompt on standard input is empty").
		Hint(`omniagent -p "what is to be done", or pipe some text`)
}

// promptFile counts a file as far as the agent's limit requires, and makes the file itself the prompt.
func (c *shimCall) promptFile(limit agent.Limit) error {
	file := c.host.Stdin
	begin, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return unreadable(err)
	}
	counter := counter{limit: limit}
	source, block := interruptible{file, c}, make([]byte, firstLook)
	for err == nil && (limited(limit) || !counter.words) {
		var n int
		if n, err = source.Read(block); n > 0 {
			if _, enough := counter.Write(block[:n]); enough != nil {
				break
			}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return unreadable(err)
	}
	if !counter.words {
		return emptyPrompt()
	}
	if err := c.tooLong(counter); err != nil {
		return err
	}
	c.prompt = prompt{reader: file, file: file, begin: begin, length: counter}
	_, err = file.Seek(begin, io.SeekStart)
	return err
}

func limited(l agent.Limit) bool { return l.Characters > 0 || l.Bytes > 0 }

// pipedPrompt reads the beginning, which may be all. A longer prompt is relayed as it comes. If the agent has a limit,
// or the prompt may be needed twice, it is first copied to an unnamed file.
func (c *shimCall) pipedPrompt(limit agent.Limit) error {
	relayed := !limited(limit) && c.args.Schema == nil
	first, err := c.readFirst(relayed)
	whole := errors.Is(err, io.EOF)
	if err != nil && !whole {
		return unreadable(err)
	}
	blank := len(bytes.TrimSpace(first)) == 0
	switch {
	case whole && blank:
		return emptyPrompt()
	case whole:
		return c.typedPrompt(string(first), limit)
	case !relayed:
		return c.spool(first, limit)
	case blank:
		return fault.New(fault.ArgError, "the prompt on standard input begins with %s blanks",
			grouped(int64(len(first)))).Hint("take the blanks away")
	}
	c.prompt = prompt{reader: io.MultiReader(bytes.NewReader(first), c.host.Stdin)}
	return nil
}

// spool copies the prompt to an unnamed file, and counts it.
func (c *shimCall) spool(first []byte, limit agent.Limit) error {
	file, err := os.CreateTemp(c.settings.Temp, "omniagent-prompt-")
	if err != nil {
		return noPlace(err)
	}
	_ = os.Remove(file.Name()) // on Windows, the file remains until it is closed
	c.temp.later(func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	})
	counter := counter{limit: limit}
	if err := copyPrompt(file, io.MultiReader(bytes.NewReader(first), interruptible{c.host.Stdin, c}),
		&counter); err != nil {
		return err
	}
	if err := c.tooLong(counter); err != nil {
		return err
	}
	if !counter.words {
		return emptyPrompt()
	}
	c.prompt = prompt{reader: file, file: file, length: counter}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// copyPrompt copies until the end, or until the counter's limit is exceeded.
func copyPrompt(file io.Writer, source io.Reader, counter *counter) error {
	block := make([]byte, firstLook)
	for {
		n, err := source.Read(block)
		_, enough := counter.Write(block[:n])
		if enough != nil {
			return nil
		}
		if _, err := file.Write(block[:n]); err != nil {
			return noPlace(err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
	}
}

// noPlace returns the fault for a failed spool, which is not the caller's mistake.
func noPlace(err error) error {
	code := fault.Internal
	if errors.Is(err, syscall.ENOSPC) {
		code = fault.DiskFull
	}
	return fault.New(code, "the prompt cannot be kept in a temporary file").Because(fault.Bare(err)).Hint(
		"set TMPDIR to a directory that can be written to and has room")
}

func unreadable(err error) error {
	if f := fault.Of(err); f.Code == fault.Interrupted || f.Code == fault.TimedOut {
		return f
	}
	return fault.New(fault.ArgError, "the prompt on standard input cannot be read").
		Because(fault.Bare(err)).Hint(`omniagent -p "what is to be done"`)
}

// readFirst reads the first block, or less if the input ends. With words, it continues while there is only white space,
// up to mostBlanks. If no input comes, it prints a note once.
func (c *shimCall) readFirst(words bool) ([]byte, error) {
	var read []byte
	source, block := lines.Awaited(interruptible{c.host.Stdin, c}, "the prompt", "-p TEXT gives it directly",
		func(words string) { c.note("%s", words) }), make([]byte, firstLook)
	for blank := true; len(read) < firstLook || words && blank && len(read) < mostBlanks; {
		room := block
		if left := firstLook - len(read); left > 0 {
			room = block[:left]
		}
		n, err := source.Read(room)
		read = append(read, room[:n]...)
		blank = blank && len(bytes.TrimSpace(room[:n])) == 0
		if err != nil {
			return read, err
		}
	}
	return read, nil
}

// interruptible reads in the background, so that a signal or the time limit can end the wait. Before the agent starts,
// nothing else handles them.
type interruptible struct {
	from io.Reader
	call *shimCall
}

func (r interruptible) Read(into []byte) (int, error) {
	type got struct {
		n   int
		err error
	}
	done := make(chan got, 1)
	go func() {
		n, err := r.from.Read(into)
		done <- got{n, err}
	}()
	var over <-chan time.Time
	limit := *r.call.args.Timeout
	if limit > 0 {
		over = time.After(time.Until(r.call.began.Add(limit)))
	}
	select {
	case g := <-done:
		return g.n, g.err
	case s := <-r.call.host.Signals:
		return 0, fault.New(fault.Interrupted, "interrupted by %s while the prompt was read", process.SignalName(s)).
			With("signal", process.SignalName(s))
	case <-over:
		return 0, fault.New(fault.TimedOut, "the prompt did not arrive within %s", limit).
			Hint(`omniagent -p "what is to be done" gives it directly`)
	}
}

// tooLong returns an error for a prompt that exceeds the agent's limit.
func (c *shimCall) tooLong(n counter) error {
	title := c.driver.Describe().Title
	var what string
	switch l := n.limit; {
	case l.Characters > 0 && n.all() > l.Characters:
		what = grouped(l.Characters) + " characters"
	case l.Bytes > 0 && n.bytes > l.Bytes:
		what = grouped(l.Bytes) + " bytes"
	default:
		return nil
	}
	return fault.New(fault.PromptTooLong, "the prompt is longer than the %s that %s takes", what, title).
		Hint("put the text into a file and name it in the prompt")
}

// grouped returns 1048576 as 1,048,576.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

var errEnough = errors.New("more than the limit")

// counter counts bytes and characters. Write returns errEnough when there are more than the limit.
type counter struct {
	limit      agent.Limit
	bytes      int64
	characters int64
	words      bool // something other than white space
	partial    []byte
}

func (n *counter) Write(p []byte) (int, error) {
	n.words = n.words || len(bytes.TrimSpace(p)) > 0
	n.bytes += int64(len(p))
	n.characters += int64(n.count(p))
	if n.limit.Characters > 0 && n.characters > n.limit.Characters || n.limit.Bytes > 0 && n.bytes > n.limit.Bytes {
		return len(p), errEnough
	}
	return len(p), nil
}

// count counts characters across blocks. An invalid byte counts as a character.
func (n *counter) count(p []byte) (count int) {
	for len(n.partial) > 0 && len(p) > 0 {
		n.partial, p = append(n.partial, p[0]), p[1:]
		for len(n.partial) > 0 && utf8.FullRune(n.partial) {
			_, size := utf8.DecodeRune(n.partial)
			n.partial = n.partial[size:]
			count++
		}
	}
	end := len(p)
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if b := p[len(p)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-back:]) {
				end = len(p) - back
			}
			break
		}
	}
	n.partial = append(n.partial, p[end:]...)
	return count + utf8.RuneCount(p[:end])
}

// all returns the number of characters if nothing more comes.
func (n *counter) all() int64 { return n.characters + int64(utf8.RuneCount(n.partial)) }
