// Package walk calls the built program as an outsider does: each command of its manifest, in every odd way that a
// caller may have.
//
// It promises that a new command is walked without a line of test code: the list of commands, a call that works and the
// exit codes come from the program's own description. Only a command that reads standard input has to be given
// something to read.
//
// It refuses to know how anything is done inside. What the description does not tell (by what a list is sorted) comes
// from the declarations.
package walk
