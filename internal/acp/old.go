package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/lines"
	"omniagent/internal/model"
	"omniagent/internal/session"
	"omniagent/internal/workspace"
)

// ledger is the record that version 0.1 wrote of a session with an installed agent: DIR/ID.jsonl, with a line for each
// update to the client. It is converted to a journal when its session is first needed. The file is kept until the
// session is deleted.
type ledger struct {
	id       string
	begin    ledgerBegin
	title    string
	own      string // the agent's own id of the session
	updated  time.Time
	messages []model.Message
}

// ledgerLine is a line of a ledger. One field is set.
type ledgerLine struct {
	Begin  *ledgerBegin  `json:"begin"`
	Resume string        `json:"resume"`
	Update *ledgerUpdate `json:"update"`
}

type ledgerBegin struct {
	Agent string    `json:"agent"`
	Dir   string    `json:"dir"`
	Dirs  []string  `json:"dirs"`
	Time  time.Time `json:"time"`
}

type ledgerUpdate struct {
	Kind   string `json:"kind"` // user, agent, thought, tool, plan, title
	Text   string `json:"text"`
	Title  string `json:"title"`
	Blocks []struct {
		Text  string `json:"text"`
		Media string `json:"media"`
		Data  []byte `json:"data"`
		Name  string `json:"name"`
	} `json:"blocks"`
	Tool *ledgerTool `json:"tool"`
}

type ledgerTool struct {
	ID      string          `json:"id"`
	New     bool            `json:"new"`
	Name    string          `json:"name"`
	Status  string          `json:"status"`
	Input   json.RawMessage `json:"input"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Terminal *struct {
		Command string  `json:"command"`
		Output  *string `json:"output"`
	} `json:"terminal"`
}

const ledgerEnding = ".jsonl"

func (p Past) ledgerFile(id string) string { return filepath.Join(p.Old, id+ledgerEnding) }

// ledgers returns the agent's ledgers that have messages. It reads only what a list shows of each.
func (p Past) ledgers(ctx context.Context) ([]ledger, error) {
	if p.Old == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(p.Old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be read", p.Old).Because(err)
	}
	var all []ledger
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		id, named := strings.CutSuffix(e.Name(), ledgerEnding)
		if !named {
			continue
		}
		if l, err := p.ledger(id, true); err == nil && l.title != "" && l.begin.Agent == p.Agent {
			all = append(all, l)
		}
	}
	return all, nil
}

// longestLine exceeds any line of a ledger.
const longestLine = 64 << 20

// ledger reads a ledger, or if brief is true only up to its title. It skips unreadable lines, because the writer may
// have been killed.
func (p Past) ledger(id string, brief bool) (ledger, error) {
	l := ledger{id: id}
	missing := fault.New(fault.NotFoundCode, "there is no session %s", id)
	if session.CheckID(id) != nil {
		return l, missing
	}
	info, err := os.Lstat(p.ledgerFile(id)) // check before opening it: a pipe would block
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return l, missing
	}
	var f *os.File
	if err == nil {
		l.updated = info.ModTime()
		f, err = os.Open(p.ledgerFile(id))
	}
	if err != nil {
		return l, fault.New(fault.PermissionDenied, "the session %s cannot be read", id).Because(err)
	}
	defer f.Close()
	in := lines.NewReader(f, longestLine)
	for in.Next() {
		var line ledgerLine
		if json.Unmarshal(in.Text, &line) == nil {
			l.take(line)
		}
		if brief && l.title != "" {
			return l, nil
		}
	}
	if err := in.Err(); err != nil {
		return l, fault.New(fault.Internal, "the session %s cannot be read", id).Because(err)
	}
	return l, nil
}

// take handles a line.
func (l *ledger) take(line ledgerLine) {
	if line.Begin != nil { // each opening wrote one; the last one counts
		l.begin = *line.Begin
	}
	if line.Resume != "" {
		l.own = line.Resume
	}
	u := line.Update
	if u == nil {
		return
	}
	switch u.Kind {
	case "title":
		l.title = u.Title
	case "user":
		for _, b := range u.Blocks {
			kind := model.Text
			if strings.HasPrefix(b.Media, "image/") {
				kind = model.Image
			} else if b.Media != "" {
				kind = model.File
			}
			l.say(model.User, model.Block{Kind: kind, Text: b.Text, Media: b.Media, Data: b.Data, Name: b.Name})
		}
	case "agent":
		l.say(model.Assistant, model.Block{Kind: model.Text, Text: u.Text})
	case "thought":
		l.say(model.Assistant, model.Block{Kind: model.Thinking, Text: u.Text})
	case "tool":
		if u.Tool != nil {
			l.tool(u.Tool)
		}
	}
}

// tool adds an update of a call.
func (l *ledger) tool(t *ledgerTool) {
	if t.New {
		input := t.Input
		var object map[string]json.RawMessage
		if json.Unmarshal(input, &object) != nil || object == nil {
			input = json.RawMessage("{}")
		}
		if term := t.Terminal; term != nil && term.Command != "" && object["command"] == nil {
			input, _ = json.Marshal(map[string]string{"command": term.Command}) // strings always encode
		}
		l.say(model.Assistant, model.Block{Kind: model.Call, ID: t.ID, Name: t.Name, Input: input})
	}
	if t.Status != "completed" && t.Status != "failed" {
		return
	}
	result := model.Block{Kind: model.Result, ID: t.ID, Name: t.Name, Failed: t.Status == "failed"}
	for _, c := range t.Content {
		result.Text += c.Text
	}
	if t.Terminal != nil && t.Terminal.Output != nil {
		result.Text = *t.Terminal.Output
	}
	l.say(model.User, result)
}

// say adds a block, to the last message if that has the same role.
func (l *ledger) say(role model.Role, b model.Block) {
	if n := len(l.messages); n > 0 && l.messages[n-1].Role == role {
		l.messages[n-1].Blocks = append(l.messages[n-1].Blocks, b)
		return
	}
	l.messages = append(l.messages, model.Message{Role: role, Blocks: []model.Block{b}})
}

// adopt converts a ledger to a journal. If begun is true, a journal without messages exists, because a conversion may
// have been killed. The messages are written last and all at once, so that such a journal can be recognised.
func (p Past) adopt(ctx context.Context, l ledger, begun bool) (err error) {
	id := l.id
	held, err := p.lockLedger(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	var journal *session.Session
	if begun {
		journal, err = p.Store.Resume(ctx, id)
	} else {
		journal, err = p.Store.Create(ctx, session.Begin{
			ID: id, Agent: l.begin.Agent, Cwd: l.begin.Dir, Created: l.begin.Time, Title: l.title,
		})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if l.own != "" {
		if _, err := journal.Append(session.Changed{Session: l.own}); err != nil {
			return err
		}
	}
	return journal.Adopt(session.Adopted{From: p.ledgerFile(id)}, l.messages)
}

// lockLedger locks a ledger, as version 0.1 does while it writes.
func (p Past) lockLedger(ctx context.Context, id string) (*workspace.FileLock, error) {
	return workspace.Lock(ctx, filepath.Join(p.Old, id+".lock"), 0)
}

// removeLedger removes a ledger if there is one.
func (p Past) removeLedger(ctx context.Context, id string) error {
	if p.Old == "" {
		return nil
	}
	if _, err := p.ledger(id, true); errors.Is(err, fault.NotFoundCode) {
		return nil
	}
	held, err := p.lockLedger(ctx, id)
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	if err := os.Remove(p.ledgerFile(id)); err != nil {
		return fault.New(fault.PermissionDenied, "the session %s cannot be deleted", id).Because(err)
	}
	return nil
}
