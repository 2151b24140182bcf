package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
)

// The limits of what is shown of a call and of its result.
const (
	longestInput  = 140
	mostLines     = 5
	longestResult = 1000 // characters
)

// callLine returns a call in one line.
func callLine(c *event.Call) string {
	return strings.TrimSpace("⏺ " + text.Name(c.Name) + " " + text.Visible(brief(c.ForHosts())))
}

// brief returns what a call is about. For a tool with a namespace, that is its input as written.
func brief(c *event.Call) string {
	var compact bytes.Buffer
	if strings.Contains(c.Name, ".") && len(c.Input) > 0 && json.Compact(&compact, c.Input) == nil {
		return text.Cut(compact.String(), longestInput)
	}
	switch {
	case c.Command != "":
		return firstLine(c.Command)
	case c.Path != "":
		return text.Name(c.Path)
	}
	if to := c.HandsOver(); to != "" {
		return firstLine(to)
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, name := range []string{"pattern", "url", "description", "query"} {
		var s string
		if json.Unmarshal(in[name], &s) == nil && s != "" {
			return firstLine(s)
		}
	}
	return ""
}

// folded returns the beginning of a result, and how to see the rest. number is its number for /show; 0: it has none.
func folded(e event.Event, number int) []string {
	r := e.Result
	if r.Change != nil && !r.Failed {
		return nil
	}
	output := strings.TrimRight(r.Output, "\n ")
	if output == "" && !r.Failed {
		return []string{"(no output)"}
	}
	note := ""
	if number > 0 {
		note = fmt.Sprintf(", /show %d", number)
	}
	lines := truncated(output, note)
	for i, line := range lines {
		clean, _ := text.Clean(line)
		lines[i] = strings.TrimRight(cells.Untabbed(clean), " ")
	}
	if r.Failed && !e.Synthetic && (r.ExitCode == nil || output == "") {
		lines[0] = strings.TrimSpace("failed: " + lines[0])
	}
	return lines
}

// truncated returns the first lines of a text. If something is left out, the last line says how much, followed by the
// note.
func truncated(output, note string) []string {
	all := strings.Split(output, "\n")
	lines, room := all[:min(len(all), mostLines)], longestResult
	for i, line := range lines {
		if room -= utf8.RuneCountInString(line); room >= 0 {
			continue
		}
		end := len(line)
		for range -room {
			_, size := utf8.DecodeLastRuneInString(line[:end])
			end -= size
		}
		rest := utf8.RuneCountInString(strings.Join(all[i:], "\n")) - utf8.RuneCountInString(line[:end])
		lines[i] = fmt.Sprintf("%s... (truncated %d chars)%s", line[:end], rest, note)
		return lines[:i+1]
	}
	if left := len(all) - len(lines); left > 0 {
		lines = append(slices.Clip(lines), fmt.Sprintf("... (truncated %d lines)%s", left, note))
	}
	return lines
}

func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 200 {
		line, more = strings.ToValidUTF8(line[:200], ""), true
	}
	if more {
		line += " …"
	}
	return line
}
