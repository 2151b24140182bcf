package claude

import (
	"slices"
	"strings"

	"omniagent/internal/kit/setting"
)

// Mode maps one of Claude Code's permission modes to ours.
type Mode struct {
	Word    string           // Claude Code's word
	Mode    setting.Approval // empty if there is no equivalent
	Flag    string           // the word of --permission-mode
	Unasked bool             // questions are denied
	Why     string           // why there is no equivalent
}

// Modes returns the table of modes. It always refuses auto: in Claude Code, a model of the vendor judges each call in
// that mode, while in other dialects auto allows everything.
func Modes() []Mode {
	return []Mode{
		{Word: "default", Mode: setting.Prompt, Flag: "prompt"},
		{Word: "manual", Mode: setting.Prompt, Flag: "prompt"},
		{Word: "acceptEdits", Mode: setting.AutoEdit, Flag: "auto-edit"},
		{Word: "plan", Mode: setting.Plan, Flag: "plan"},
		{Word: "bypassPermissions", Mode: setting.Yolo, Flag: "auto"},
		{Word: "dontAsk", Mode: setting.Prompt, Flag: "dont-ask", Unasked: true},
		{
			Word: "auto",
			Why:  "in Claude Code's mode auto a model of its vendor judges each call, and there is none here",
		},
	}
}

// ModeOf finds a mode by Claude Code's word. For an unknown word, why is the reason.
func ModeOf(word string) (m Mode, why string) {
	all := Modes()
	if i := slices.IndexFunc(all, func(m Mode) bool { return m.Word == word }); i >= 0 {
		return all[i], all[i].Why
	}
	var words []string
	for _, m := range all {
		if m.Why == "" {
			words = append(words, m.Word)
		}
	}
	return Mode{}, "the modes are " + strings.Join(words, ", ")
}

// Word returns Claude Code's word for a mode.
func Word(m setting.Approval, unasked bool) string {
	switch {
	case m == setting.DenyAll, unasked && (m == setting.Prompt || m == setting.Default):
		return "dontAsk"
	case m == setting.AutoEdit:
		return "acceptEdits"
	case m == setting.Plan:
		return "plan"
	case m == setting.Yolo:
		return "bypassPermissions"
	}
	return "default"
}
