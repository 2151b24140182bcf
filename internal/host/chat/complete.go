package chat

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/term/lineedit"
)

// mostCandidates limits the candidates that are offered.
const mostCandidates = 50

// Complete offers completions: files after @file:, agents after @agent:, and commands after a slash at the beginning.
// It implements lineedit.Source.
func (c *Chat) Complete(ctx context.Context, before string, offer func(lineedit.Offer)) {
	start := strings.LastIndexAny(before, " \t\n") + 1
	written := before[start:]
	if typed, ok := strings.CutPrefix(written, "/"); ok && start == 0 {
		offer(lineedit.Offer{From: 0, Candidates: c.completeCommand(ctx, typed)})
		return
	}
	if typed, from, ok := eidolon.FileBegun(before); ok {
		c.completeFile(ctx, typed, func(found []lineedit.Candidate) {
			offer(lineedit.Offer{From: from, Candidates: found})
		})
		return
	}
	if at := strings.LastIndex(written, eidolon.AgentWord); at >= 0 {
		from := start + at + len(eidolon.AgentWord)
		offer(lineedit.Offer{From: from, Candidates: c.completeAgent(ctx, before[from:])})
	}
}

func (c *Chat) completeCommand(ctx context.Context, typed string) (found []lineedit.Candidate) {
	add := func(name, help string) {
		if strings.HasPrefix(name, typed) && len(found) < mostCandidates {
			found = append(found, lineedit.Candidate{Text: "/" + name + " ", Description: text.Flat(help)})
		}
	}
	for _, p := range c.fileCommands(ctx) { // first, because a person knows the built-in ones
		if !strings.ContainsFunc(p.Name, text.IsControl) {
			add(p.Name, p.Description)
		}
	}
	for _, one := range builtIn() {
		if one.help != "" {
			add(one.name, one.help)
		}
	}
	for _, name := range c.announced() {
		if text.Name(name) == name {
			add(name, "a command of the agent")
		}
	}
	return found
}

func (c *Chat) completeAgent(ctx context.Context, typed string) (found []lineedit.Candidate) {
	for _, p := range c.World.prompts(ctx).Agents {
		if !strings.HasPrefix(p.Name, typed) || text.Name(p.Name) != p.Name {
			continue
		}
		help := p.Description
		if p.Untrusted {
			help = "not trusted"
		}
		found = append(found, lineedit.Candidate{Text: p.Name + " ", Description: text.Flat(help)})
	}
	return found
}

// completeFile offers the matching entries of the directory of the typed path, again after each part of the directory
// that is read.
func (c *Chat) completeFile(ctx context.Context, typed string, offer func([]lineedit.Candidate)) {
	if c.World.List == nil {
		return
	}
	dir, prefix := filepath.Split(typed)
	folded := strings.ToLower(prefix)
	var found []lineedit.Candidate
	c.World.List(ctx, pathname.From(c.World.Dir, pathname.Typed(c.World.Home, dir)), func(names []string) {
		for _, name := range names {
			hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(prefix, ".")
			if hidden || !strings.HasPrefix(strings.ToLower(name), folded) || text.Name(name) != name {
				continue
			}
			one := lineedit.Candidate{Text: eidolon.Quoted(dir + name)}
			if one.Text != dir+name && strings.Contains(name, `"`) {
				continue // it cannot be written
			}
			if strings.HasSuffix(name, "/") {
				one.Text = strings.TrimSuffix(one.Text, `"`) // the path continues
			} else {
				one.Text += " "
			}
			found = append(found, one)
		}
		if len(found) == 0 {
			return
		}
		slices.SortFunc(found, func(a, b lineedit.Candidate) int { return strings.Compare(a.Text, b.Text) })
		found = found[:min(len(found), mostCandidates)]
		offer(slices.Clone(found))
	})
}
