package chat

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/sys/workspace"
)

// references returns the blocks of a message: the prompt of the current agent, unless the conversation has it; the
// files that the message names; and its text, with absolute paths. ok is false if the person has to change the message.
func (c *Chat) references(ctx context.Context, message string) (blocks []event.Block, agent applied, ok bool) {
	c.mu.Lock()
	agent = c.agent
	c.mu.Unlock()
	if name := eidolon.AgentNamed(message); name != "" {
		prompt, problem := c.agentPrompt(ctx, name)
		if problem != "" {
			c.notice(problem)
			return nil, agent, false
		}
		if prompt.Name != agent.name || prompt.Text != agent.text {
			agent = applied{name: prompt.Name, text: prompt.Text}
		}
	}
	if agent.name != "" && !agent.known {
		blocks, agent.known = append(blocks, blockOf(eidolon.AgentWord+agent.name, agent.text)), true
	}
	absolute, files := eidolon.FilesNamed(message, c.World.Dir, c.World.Home, c.World.Exists)
	for _, f := range files {
		block, problem := c.file(&f)
		if f.Outside {
			c.notice(problem)
			return nil, agent, false
		}
		if problem != "" {
			c.notice("· " + problem)
			continue
		}
		blocks = append(blocks, block)
	}
	return append(blocks, event.Block{Text: absolute}), agent, true
}

// agentPrompt returns the prompt of an agent that a file defines, or a problem for the person.
func (c *Chat) agentPrompt(ctx context.Context, name string) (found eidolon.Prompt, problem string) {
	var names []string
	for _, p := range c.World.prompts(ctx).Agents {
		if p.Name == name || found.Name == "" && p.Name == strings.TrimRight(name, eidolon.Punctuation) {
			found = p
		}
		names = append(names, p.Name)
	}
	switch near := text.Nearest(name, names); {
	case found.Untrusted:
		return found, untrusted("agent", found)
	case found.Name != "":
		return found, ""
	case near != "":
		return found, fmt.Sprintf("There is no agent %s; %s%s is the nearest. Nothing was sent.", text.Name(name),
			eidolon.AgentWord, text.Name(near))
	}
	return found, fmt.Sprintf("There is no agent %s: neither %s has %s.md. Nothing was sent.", text.Name(name),
		"~/.eidolon/agents nor .eidolon/agents", text.Name(name))
}

func untrusted(kind string, p eidolon.Prompt) string {
	return fmt.Sprintf("The %s %s comes from this workspace and counts once you trust it: omniagent trust %s",
		kind, text.Name(p.Name), text.Shell(p.Path))
}

// file reads a file that a message names, or returns why it is not sent.
func (c *Chat) file(f *eidolon.File) (event.Block, string) {
	name := text.Name(f.Written)
	if f.Outside {
		return event.Block{}, fmt.Sprintf("%s leads out of this workspace. Nothing was sent. "+
			"Its absolute path is read: %s%s", name, eidolon.FileWord, text.Name(f.Path))
	}
	if c.World.Load == nil {
		return event.Block{}, name + " was not read"
	}
	if c.World.Exists != nil && !c.World.Exists(f.Path) {
		return event.Block{}, "there is no file " + name + "; only its name is sent"
	}
	content, err := c.World.Load(*f)
	switch {
	case workspace.Outside(err):
		f.Outside = true
		return c.file(f)
	case err != nil:
		return event.Block{}, "only the name of " + name + " is sent: " + err.Error()
	}
	media, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case strings.HasPrefix(media, "image/"), media == "application/pdf":
		return event.Block{Media: media, Data: content, Name: filepath.Base(f.Path)}, ""
	case !utf8.Valid(content) && strings.HasPrefix(media, "text/"):
		return event.Block{}, "only the name of " + name + " is sent: it is a text, and not UTF-8"
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return event.Block{}, fmt.Sprintf("only the name of %s is sent: it holds %s", name, media)
	}
	word := eidolon.FileWord + f.Path
	return blockOf(word, word+"\n"+string(content)), ""
}

// secret returns the path of a file among the blocks that may contain logins or keys, or "".
func (c *Chat) secret(blocks []event.Block) string {
	for _, b := range blocks {
		path, named := strings.CutPrefix(b.Name, eidolon.FileWord)
		if named && c.World.Private != nil && c.World.Private(path) {
			return text.Name(path)
		}
	}
	return ""
}

// shell runs a command that the person typed, in the background, so that the person can answer a question of the
// running turn. The agent gets the result with the next message.
func (c *Chat) shell(ctx context.Context, command string) {
	switch {
	case command == "":
		c.notice("There is no command behind " + eidolon.ShellWord)
		return
	case c.World.Shell == nil:
		c.notice(notHere)
		return
	case c.command.Load() != nil:
		c.idle(eidolon.ShellWord+text.OneLine(command, 40), eidolon.ShellWord+command, func() { c.shell(ctx, command) })
		return
	}
	ctx, stop := context.WithCancel(ctx)
	c.command.Store(&stop)
	input := text.MustLine(map[string]string{"command": command}) // shown like a call of the model
	c.mu.Lock()
	c.update()
	c.View.Event(event.Event{Kind: event.ToolCall, Call: &event.Call{
		ID: eidolon.ShellWord, Name: "SysBuiltIn.bash", Kind: event.Shell, Command: command, Input: input,
	}}, 0)
	c.mu.Unlock()
	c.beside.Go(func() {
		defer stop()
		output, code, err := c.World.Shell(ctx, command)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.command.Store(nil)
		defer c.refresh(true)
		if err != nil {
			c.View.Notice("failed: " + err.Error())
			return
		}
		c.ran(command, output, code)
	})
}

// ran shows the result of the person's command, and keeps it for the next message. The caller holds the lock.
func (c *Chat) ran(command, output string, code int) {
	output = cmp.Or(output, "(no output)")
	if code > 0 { // otherwise it succeeded, or was killed, which the output says
		output = strings.TrimSuffix(output, "\n") + fmt.Sprintf("\n[exit code %d]", code)
	}
	c.results = append(c.results, kept{text: output})
	c.View.Event(event.Event{Kind: event.ToolResult, Result: &event.Result{
		ID: eidolon.ShellWord, Name: "SysBuiltIn.bash", Output: output, ExitCode: &code, Failed: code != 0,
	}}, len(c.results))
	word := eidolon.ShellWord + command
	c.before = append(c.before, blockOf(word, word+"\n"+output))
}
