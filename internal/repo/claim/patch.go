package claim

import (
	"encoding/json"
	"strings"

	"omniagent/internal/sys/touch"
)

// begins is the first line of a patch in the format that OpenAI's models write.
const begins = "*** Begin Patch"

// fileChange is a file in a file change item of Codex.
type fileChange struct {
	Path string          `json:"path"`
	Kind json.RawMessage `json:"kind"`
	Diff *string         `json:"diff"` // of a new file, its content
}

func (f fileChange) claims() []touch.Claim {
	var kind struct {
		Type string  `json:"type"`
		Move *string `json:"move_path"`
	}
	if json.Unmarshal(f.Kind, &kind) != nil {
		_ = json.Unmarshal(f.Kind, &kind.Type)
	}
	moves := kind.Move != nil && *kind.Move != ""
	switch {
	case kind.Type == "delete":
		return []touch.Claim{{Path: f.Path, Edit: remove, Removes: true}}
	case f.Diff == nil || moves:
		all := []touch.Claim{{Path: f.Path}}
		if moves {
			all[0].Removes = true
			all = append(all, touch.Claim{Path: *kind.Move})
		}
		return all
	case kind.Type == "add":
		return []touch.Claim{{Path: f.Path, Edit: put(*f.Diff), Whole: true}}
	}
	return []touch.Claim{{Path: f.Path, Edit: hunks(strings.Split(*f.Diff, "\n"))}}
}

// patched returns what a patch claims of each of its files.
func patched(text string) (all []touch.Claim) {
	_, text, _ = strings.Cut(text, begins)
	text, _, _ = strings.Cut(text, "*** End Patch")
	for _, part := range strings.Split("\n"+text, "\n*** ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		action, path, _ := strings.Cut(head, ": ")
		lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		switch path = strings.TrimSpace(path); action {
		case "Add File":
			var b strings.Builder
			for _, line := range lines {
				b.WriteString(strings.TrimPrefix(line, "+") + "\n")
			}
			all = append(all, touch.Claim{Path: path, Edit: put(b.String()), Whole: true})
		case "Delete File":
			all = append(all, touch.Claim{Path: path, Edit: remove, Removes: true})
		case "Update File":
			all = append(all, touch.Claim{Path: path, Edit: hunks(lines)})
		case "Move to":
			if n := len(all); n > 0 { // what it becomes is not followed
				all[n-1].Edit, all[n-1].Removes = nil, true
				all = append(all, touch.Claim{Path: path})
			}
		}
	}
	return all
}

// hunks returns the edit that the hunks of a diff make: each replaces the first match of its old lines after the hunk
// before it.
func hunks(lines []string) edit {
	type hunk struct{ old, text []string }
	var all []hunk
	for _, line := range lines {
		if strings.HasPrefix(line, "@@") || len(all) == 0 {
			all = append(all, hunk{})
			if strings.HasPrefix(line, "@@") {
				continue
			}
		}
		h := &all[len(all)-1]
		switch {
		case strings.HasPrefix(line, "+"):
			h.text = append(h.text, line[1:])
		case strings.HasPrefix(line, "-"):
			h.old = append(h.old, line[1:])
		case strings.HasPrefix(line, " "):
			h.old, h.text = append(h.old, line[1:]), append(h.text, line[1:])
		}
	}
	return func(content []byte, exists bool) ([]byte, bool, bool) {
		rest, made := "\n"+string(content), ""
		for _, h := range all {
			old, text := block(h.old), block(h.text)
			if len(h.old) == 0 { // it stands at the end
				rest += strings.TrimPrefix(text, "\n")
				continue
			}
			before, after, found := strings.Cut(rest, old)
			if !found {
				return nil, false, false
			}
			// The last line break stays: the next hunk may begin there.
			made, rest = made+before+strings.TrimSuffix(text, "\n"), "\n"+after
		}
		return []byte(strings.TrimPrefix(made+rest, "\n")), exists, exists
	}
}

// block joins whole lines, each with a line break before it, and ends with a line break.
func block(lines []string) string {
	if len(lines) == 0 {
		return "\n"
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}
