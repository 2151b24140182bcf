package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/text"
)

// How much of a call and of its result is shown.
const (
	longestInput  = 140
	mostLines     = 5
	longestResult = 1000
)

// callLine shows a call in one line.
func callLine(c *event.Call) string {
	return strings.TrimSpace("⏺ " + text.Name(c.Name) + " " + text.Visible(brief(c.ForHosts())))
}

// brief says what a call is about: for the tools of a name space their input, as it was written.
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

// folded shows the beginning of a result, and how to see the rest.
func folded(r *event.Result, number int) []string {
	output := strings.TrimRight(r.Output, "\n ")
	if r.Change != nil && !r.Failed {
		return nil
	}
	if output == "" && !r.Failed {
		return []string{"(no output)"}
	}
	all := strings.Split(output, "\n")
	shown := all[:min(len(all), mostLines)]
	size, more := 0, len(all)-len(shown)
	for i, line := range shown {
		if size += len(line); size > longestResult {
			shown[i] = strings.ToValidUTF8(line[:max(0, longestResult-size+len(line))], "")
			shown, more = shown[:i+1], max(more, 1)
			break
		}
	}
	var lines []string
	for _, line := range shown {
		lines = append(lines, text.Flat(line))
	}
	if r.Failed && (r.ExitCode == nil || len(lines) == 0) {
		first := ""
		if len(lines) > 0 {
			first = lines[0]
		}
		lines = append([]string{strings.TrimSpace("failed: " + first)}, lines[min(1, len(lines)):]...)
	}
	switch {
	case more > 0 && number > 0:
		lines = append(lines, fmt.Sprintf("… %d more lines, /show %d", more, number))
	case more > 0:
		lines = append(lines, fmt.Sprintf("… %d more lines", more))
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
