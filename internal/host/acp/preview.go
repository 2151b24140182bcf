package acp

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
	wire "omniagent/internal/wire/acp"
)

// longestShown limits the size of a file whose changes are shown.
const longestShown = 1 << 20

// edit is a replacement, with all names that agents use for its members.
type edit struct {
	Old     *string `json:"old_string"`
	New     *string `json:"new_string"`
	OldCase *string `json:"oldString"`
	NewCase *string `json:"newString"`
	OldStr  *string `json:"old_str"`
	NewStr  *string `json:"new_str"`
	All     bool    `json:"replace_all"`
	AllCase bool    `json:"replaceAll"`
}

func (e edit) texts() (old, new string, ok bool) {
	for _, pair := range [][2]*string{{e.Old, e.New}, {e.OldCase, e.NewCase}, {e.OldStr, e.NewStr}} {
		if pair[0] != nil && pair[1] != nil {
			return *pair[0], *pair[1], true
		}
	}
	return "", "", false
}

// change is the input of a tool that changes a file.
type change struct {
	edit
	Edits    []edit  `json:"edits"`
	Content  *string `json:"content"`
	FileText *string `json:"file_text"`
}

// preview returns the change that a call would make to a file, as far as is known. The tool may already be running, so
// edits that do not fit the file are shown as excerpts.
func (n *narrator) preview(e *event.Call) []wire.Content {
	var in change
	if e.Kind != event.Write || e.Path == "" || json.Unmarshal(e.Input, &in) != nil {
		return nil
	}
	path := n.absolute(e.Path)
	whole := in.Content
	if whole == nil {
		whole = in.FileText
	}
	edits := in.Edits
	if _, _, ok := in.texts(); ok {
		edits = append(edits, in.edit)
	}
	now, there, readable := n.file(path)
	var before *string // nil: there is no such file
	if there {
		before = &now
	}
	switch {
	case whole != nil && (!readable || there && now == *whole):
		return nil
	case whole != nil:
		return n.diff(path, before, *whole, false)
	case len(edits) == 0:
		return nil
	}
	if after, ok := apply(now, edits); ok && readable {
		return n.diff(path, before, after, false)
	}
	var pieces []wire.Content
	for _, one := range edits {
		if old, new, ok := one.texts(); ok {
			pieces = append(pieces, n.diff(path, &old, new, true)...)
		}
	}
	return pieces
}

func (n *narrator) diff(path string, old *string, new string, part bool) []wire.Content {
	if len(new) > longestShown {
		return nil
	}
	d := &wire.Diff{Path: path, New: n.mask(new), Part: part}
	if old != nil {
		masked := n.mask(*old)
		d.Old = &masked
	}
	return []wire.Content{{Diff: d}}
}

// file returns the content of a file. It only reads text files of the workspace.
func (n *narrator) file(path string) (content string, there, readable bool) {
	if !pathname.Within(n.dir, path) || n.past {
		return "", false, false
	}
	data, err := workspace.ReadFile(path, longestShown)
	switch {
	case errors.Is(err, fault.FileMissing):
		return "", false, true
	case err != nil || !utf8.Valid(data):
		return "", false, false
	}
	return string(data), true, true
}

// apply makes the replacements. ok reports whether the result is certain; the replacements may already have been made.
func apply(text string, edits []edit) (after string, ok bool) {
	for _, one := range edits {
		old, new, has := one.texts()
		times := strings.Count(text, old)
		switch {
		case !has:
			return "", false
		case old == "":
			if text != "" {
				return "", false
			}
			text = new
			continue
		case times == 0, times > 1 && !one.All && !one.AllCase:
			return "", false
		case strings.Contains(new, old) && strings.Contains(text, new): // may already have been made
			return "", false
		}
		text = strings.ReplaceAll(text, old, new)
		if len(text) > longestShown {
			return "", false
		}
	}
	return text, true
}
