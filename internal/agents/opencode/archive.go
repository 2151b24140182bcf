package opencode

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"omniagent/internal/agents/sqlite"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/text"
)

// archive returns the sessions in the CLI's database.
func archive(env []string) agent.Archive { return store(database(env)) }

// store is the path of the database, or empty.
type store string

// untitled is the beginning of the title that a session has until a model gives it one.
const untitled = "New session - "

// List implements agent.Archive. It leaves out sessions with a parent, which belong to sub-agents.
func (s store) List(ctx context.Context, most int) ([]agent.ArchivedConversation, error) {
	found := []agent.ArchivedConversation{}
	err := s.open(func(f *sqlite.File, all map[string]sqlite.Table) error {
		sessions := all["session"]
		err := f.Newest(sessions, func(r []any) bool {
			if sessions.Text(r, "parent_id") != "" {
				return true
			}
			p := agent.ArchivedConversation{
				ID: sessions.Text(r, "id"), Dir: sessions.Text(r, "directory"),
				Title:   text.OneLine(sessions.Text(r, "title"), 80),
				Created: time.UnixMilli(sessions.Number(r, "time_created")).UTC(),
				Updated: time.UnixMilli(sessions.Number(r, "time_updated")).UTC(), Messages: -1, File: string(s),
			}
			found = append(found, p)
			return len(found) < most && ctx.Err() == nil
		})
		if err != nil {
			return err
		}
		for i := range found {
			p := &found[i]
			if numbers, err := f.Under(all["message_session_time_created_id_idx"], p.ID); err == nil {
				p.Messages = len(numbers)
			}
			if strings.HasPrefix(p.Title, untitled) {
				_ = parts(f, all, p.ID, func(said agent.ArchivedMessage) bool {
					p.Title = text.OneLine(said.Text, 80)
					return false
				})
			}
		}
		return ctx.Err()
	})
	return found, err
}

// Read implements agent.Archive.
func (s store) Read(ctx context.Context, p agent.ArchivedConversation, hear func(agent.ArchivedMessage) bool) error {
	return s.open(func(f *sqlite.File, all map[string]sqlite.Table) error {
		err := parts(f, all, p.ID, func(said agent.ArchivedMessage) bool { return hear(said) && ctx.Err() == nil })
		return errors.Join(err, ctx.Err())
	})
}

// open calls do with the database, unless it is missing.
func (s store) open(do func(*sqlite.File, map[string]sqlite.Table) error) error {
	if s == "" {
		return nil
	}
	if _, err := os.Stat(string(s)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := sqlite.Open(string(s))
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := f.Tables()
	if err != nil {
		return err
	}
	return do(f, all)
}

// parts calls hear with the texts of a session.
func parts(f *sqlite.File, all map[string]sqlite.Table, id string, hear func(agent.ArchivedMessage) bool) error {
	reader, roles := reading{store: f, all: all}, map[string]string{}
	messages, table, over := all["message"], all["part"], false
	err := reader.each("message", "message_session_time_created_id_idx", id, func(r []any) error {
		var m message
		if text.Lenient([]byte(messages.Text(r, "data")), &m) {
			roles[messages.Text(r, "id")] = m.Role
		}
		return nil
	})
	if err != nil {
		return err
	}
	return reader.each("part", "part_session_idx", id, func(r []any) error {
		var p struct {
			Type, Text string
			Synthetic  bool // written by the CLI, such as the content of a file
		}
		if over || !text.Lenient([]byte(table.Text(r, "data")), &p) || p.Type != "text" || p.Synthetic || p.Text == "" {
			return nil
		}
		over = !hear(agent.ArchivedMessage{User: roles[table.Text(r, "message_id")] == "user", Text: p.Text})
		return nil
	})
}
