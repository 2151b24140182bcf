// Package terminal looks at the rooms of the terminal as a person does: a scripted conversation on a real pseudo
// terminal, typed keys in, and what three emulators that nobody here wrote make of the bytes that come out. It promises
// that scrollback and screen together are the finished lines, once each, also where the window changes its size all the
// time; that the screen looks as it should in windows of three widths; and that the terminal is as it was after every
// end. A test that needs an emulator which is not here says so.
package terminal
