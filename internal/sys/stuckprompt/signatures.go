package stuckprompt

import (
	"regexp"
	"strings"
	"sync"
)

// signature is a rule that finds a prompt.
type signature struct {
	id    string
	kind  Kind
	where matchPlace
	sure  certainty
	match *regexp.Regexp
}

// matchPlace is what a signature is compared with.
type matchPlace int

const (
	onLine   matchPlace = iota // the last line, which has no end
	onMenu                     // the question and the choices of the menu that ends the screen
	onNotice                   // the last lines, which may have an end: the program says by itself that it waits
)

type certainty int

const (
	strong  certainty = iota
	running           // strong, but of a program that has exited it says nothing: the end of input answers no browser
	atEnd             // only of a program that has exited: those that work stop at such lines, too
)

func (s signature) matches(on screen) bool {
	switch s.where {
	case onMenu:
		m := on.menu
		return on.open && len(m.choices) > 0 && s.match.MatchString(m.question+"\n"+strings.Join(m.choices, "\n"))
	case onNotice:
		return s.match.MatchString(strings.Join(on.lines[max(0, len(on.lines)-3):], " "))
	default:
		return on.open && (s.sure != atEnd || on.blank) && s.match.MatchString(on.last())
	}
}

// signatures returns the table. The first one that matches counts, so what must never be answered through us comes
// first, and those that only an exit proves come last. Each has fixtures in testdata.
var signatures = sync.OnceValue(func() []signature {
	re := regexp.MustCompile
	const end = `(\?|:|[\[(][^\])"]*[\])])\s*:?\s*$`
	return []signature{
		{"trust-menu", Trust, onMenu, strong, re(`(?i)\btrust`)},
		{"login-menu", Login, onMenu, strong, re(
			`(?i)\b(sign in|log in|login) (with|to|using)\b|authenticat|\bAPI key\b`)},
		{"permission-menu", Permission, onMenu, strong, re(
			`(?i)don.t ask again|\b(allow|approve)\b|\bpermission\b|\brun this command\b`)},
		{"menu", Choice, onMenu, strong, re(``)},

		{"trust-folder", Trust, onLine, strong, re(
			`(?i)\btrust\b.*\b(folder|director|workspace|files|author|project).*` + end)},
		{"trust-host", Trust, onLine, strong, re(`(?i)\bcontinue connecting \(yes/no\b.*\)\?\s*$`)},
		{"password", Password, onLine, strong, re(`(?i)\b(password|passphrase|passcode|PIN)\b.*:\s*$`)},
		{"login-name", Login, onLine, strong, re(`(?i)\b(user ?name|login)( for '[^']*')?:\s*$`)},
		{"login-key", Login, onLine, strong, re(
			`(?i)\b(API key|token|(verification|one-time|authorization|auth|2FA) code|OTP)\b.*:\s*$`)},
		{"login-browser", Login, onLine, running, re(
			`(?i)\bin (your|a) browser\b|enter the code\b|https?://\S+/(device|activate|oauth|login)\b`)},
		{"login-code", Login, onNotice, running, re(
			`(?i:https?://\S+.*\bcode\b).*\b[A-Z0-9]{4}-[A-Z0-9]{4}\b|` +
				`\b[A-Z0-9]{4}-[A-Z0-9]{4}\b.*\bhttps?://\S+/(device|activate)\b`)},
		{"login-command", Login, onLine, running, re(`(?i)\bplease (run|use)\b.*\blog ?in\b`)},
		{"permission", Permission, onLine, strong, re(
			`(?i)\b(allow|approve)\b.*\b(run|use|edit|write|read|execute|access|call|command|tool)\b.*` + end +
				`|\brequires? (approval|confirmation)\W*$`)},

		{"confirm-letters", Confirm, onLine, strong, re(
			`(?i)[\[(]y(es)?[/,|]no?\b[^\])"]*[\])]\s*[?:]?\s*$|\sy(es)?/no?\s*[?:]\s*$`)},
		{"confirm-words", Confirm, onLine, strong, re(
			`(?i)\b(proceed|continue|overwrite|are you sure|is this ok)\b.*\?\s*(\(\w+\)|\[\w+\])?\s*:?\s*$`)},
		{"choice", Choice, onLine, strong, re(`(?i)^\W*(select|choose|pick)\b.*[:?>]\s*$`)},
		{"press-key", PressKey, onLine, strong, re(
			`(?i)^.{0,40}\b(press|hit) \W?(enter|return|any key|space|esc)\b[^.]{0,60}[.…:\])\s]*$`)},
		{"pager", Pager, onLine, strong, re(`^:\s*$|\(END\)\s*$|^-- ?More ?--|^lines \d+-\d+`)},
		{"editor", Editor, onLine, running, re(`(?i)\bwaiting for your editor\b`)},

		{"inquirer", Question, onLine, strong, re(`^\s*\? \S`)},
		{"question-mark", Question, onLine, atEnd, re(
			`(^|\s)[^\s:]*\pL[^\s:]*[?？؟]["')\]]*(\s+[\[(][^\])]*[\])])?\s*:?\s*$`)},
		{"colon", Question, onLine, atEnd, re(`^\s*\pL[^{}()=;]{0,80}(\s[\[(][^\])]*[\])])?[:：]\s*$`)},
		{"arrow", Question, onLine, atEnd, re(`(^|[?:)\]]\s*)>\s*$`)},
	}
})
