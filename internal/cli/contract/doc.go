// Package contract implements what every subcommand promises to the people and programs that call it.
//
// A command is declared once, as data (Command): its name, parameters, dangers, exit codes, the shape of its result,
// and what it needs. The parser, the help, the schema, the manifest, completions, man pages and skills come from that
// declaration, and the framework enforces it, so that no command can forget a promise.
//
// It promises:
//   - one envelope on standard output, whatever happens: success, failure, timeout, signal, panic;
//   - an exit code that is named, declared and true;
//   - no effect before every argument has been checked, and all problems reported at once;
//   - no wait without a time limit, no secret in a log, no escape sequence in the output.
//
// It refuses a wrong declaration: New returns all mistakes and no program, and a Program from Open does not run a
// command whose declaration is wrong. A command gets children, network, steps and standard input only through Call, and
// only if it declared them.
//
// The lifecycle of a call, as invoke.go carries it out:
//
//	parse → environment → configuration → conditions → validate → confirm → once → run → shape → cut → write → record
package contract
