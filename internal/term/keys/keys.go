// Package keys turns what a terminal sends into keys.
//
// Decoder takes bytes in pieces of any size and gives the same keys however they were cut. Any input is decoded:
// garbage becomes Unknown, a sequence that is cut short is resolved by Flush after a short wait, and nothing makes the
// decoder wait for bytes that may never come, with one exception that Patience names: a paste waits for its end.
package keys

import "time"

// Code says which key it is, or what else the terminal reports.
type Code uint8

// The codes.
const (
	Unknown Code = iota
	Text         // printable characters, in Key.Text; with Ctrl or Alt exactly one
	Enter
	Tab
	Backspace
	Delete
	Insert
	Escape
	Up
	Down
	Left
	Right
	Home
	End
	PageUp
	PageDown
	Function // F1 and so on: Key.Number
	Paste    // a whole paste, in Key.Text

	FocusIn  // the window is in front
	FocusOut // it is not any more
	Position // where the cursor is, from 1: Key.Row, Key.Column; the answer to a question

	// These do not come from the decoder but from package terminal.
	Resize   // the window has another size
	Continue // the program was stopped and goes on: the screen is not as it was
)

// Mod is the keys that are held.
type Mod uint8

// The modifiers.
const (
	Shift Mod = 1 << iota
	Alt
	Ctrl
)

// Key is a key that was pressed, or another report of the terminal.
type Key struct {
	Code        Code
	Mod         Mod
	Text        string // of Text and Paste
	Number      int    // of Function
	Row, Column int    // of Position
}

// Patience is how long a decoder with Pending input waits for more before Flush: an Escape is a key of its own, and the
// beginning of others.
const Patience = 50 * time.Millisecond

// PastePatience is the same within a paste, whose pieces may come slowly over a network.
const PastePatience = 2 * time.Second

// C returns the key of a letter with Ctrl, and A with Alt, as in C("a").
func C(letter string) Key { return Key{Code: Text, Mod: Ctrl, Text: letter} }

// A returns the key of a letter with Alt.
func A(letter string) Key { return Key{Code: Text, Mod: Alt, Text: letter} }

// Is reports whether k is a key without modifiers.
func (k Key) Is(c Code) bool { return k.Code == c && k.Mod == 0 }
