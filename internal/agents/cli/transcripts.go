package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
)

// Limits of reading a transcript.
const (
	longestSaid  = 4 << 20   // bytes of a line; longer ones are skipped
	countedSize  = 256 << 10 // bytes of a file that a list reads; it counts the messages only of shorter files
	searchedSize = 64 << 20  // bytes of a file that Read reads
	longestTitle = 80
)

// Transcripts is an archive of files of JSON lines, one file a conversation.
type Transcripts struct {
	Dir     string // the agent's own directory, or empty if it has none
	Pattern string // of the files below it, with slashes
	// Open returns a function that reads the lines of a file. It fills in p, and returns the message of a line, if any.
	Open func(path string, p *agent.ArchivedConversation) func(line []byte) (agent.ArchivedMessage, bool)
}

// List implements agent.Archive. Of several files of one conversation, it lists only the newest.
func (t Transcripts) List(ctx context.Context, most int) ([]agent.ArchivedConversation, error) {
	type candidate struct {
		path string
		info os.FileInfo
	}
	var paths []string
	if t.Dir != "" {
		paths, _ = filepath.Glob(filepath.Join(t.Dir, filepath.FromSlash(t.Pattern)))
	}
	var all []candidate
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, candidate{path, info})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	found, seen := []agent.ArchivedConversation{}, map[string]bool{}
	for _, one := range all {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(found) == most {
			break
		}
		p := agent.ArchivedConversation{File: one.path, Updated: one.info.ModTime().UTC(), Size: one.info.Size()}
		if t.glance(ctx, &p); p.ID == "" || seen[p.ID] || p.Title == "" {
			continue
		}
		if p.Created.IsZero() {
			p.Created = p.Updated
		}
		seen[p.ID] = true
		found = append(found, p)
	}
	return found, nil
}

// glance reads the fields that a list shows. The title is the first prompt by a person; the CLI's own prompts begin
// with <.
func (t Transcripts) glance(ctx context.Context, p *agent.ArchivedConversation) {
	first, count := "", 0
	_ = t.read(ctx, p, countedSize, func(s agent.ArchivedMessage) bool {
		count++
		line := text.OneLine(s.Text, longestTitle)
		if s.User && first == "" {
			first = line
		}
		if s.User && p.Title == "" && !strings.HasPrefix(line, "<") {
			p.Title = line
		}
		return true
	})
	p.Title = cmp.Or(p.Title, first)
	if p.Messages = count; p.Size > countedSize {
		p.Messages = -1
	}
}

// Read implements agent.Archive.
func (t Transcripts) Read(
	ctx context.Context, p agent.ArchivedConversation, hear func(agent.ArchivedMessage) bool,
) error {
	return t.read(ctx, &p, searchedSize, hear)
}

func (t Transcripts) read(
	ctx context.Context, p *agent.ArchivedConversation, most int64, hear func(agent.ArchivedMessage) bool,
) error {
	f, err := os.Open(p.File)
	if err != nil {
		return err
	}
	defer f.Close()
	said, read := t.Open(p.File, p), int64(0)
	for in := lines.NewReader(f, longestSaid); in.Next() && read <= most; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if read += int64(len(in.Text)) + 1; in.Long || len(in.Text) == 0 {
			continue
		}
		if s, ok := said(in.Text); ok && strings.TrimSpace(s.Text) != "" && !hear(s) {
			return nil
		}
	}
	return nil
}

// Time parses the time of a record. It returns the zero time if that fails.
func Time(written string) time.Time {
	at, err := time.Parse(time.RFC3339, written)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// TextOf returns the text of a message's content: a string, or the parts of a list that have no type or one of these
// types.
func TextOf(content json.RawMessage, types ...string) string {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		return whole
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, part := range parts {
		if part.Text != "" && (part.Type == "" || slices.Contains(types, part.Type)) {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}
