// Package contract is the promise of every subcommand to the people and programs that call it.
//
// A command is declared once, as data (Command): its name, parameters, dangers, exit codes, the shape of its result,
// what it needs from the world. From that one declaration come the parser, the help, the schema, the manifest,
// completions, man pages and skills; and from it the framework knows what it must enforce, so that no command can
// forget.
//
// It promises:
//   - one envelope on standard output whatever happens: success, failure, timeout, signal, panic;
//   - an exit code that is named, declared and true;
//   - no effect before every argument has been checked, and all that is wrong said at once;
//   - no wait without a clock, no secret in a log, no escape sequence in the output.
//
// It refuses a wrong declaration: New returns every mistake and no program. What a command uses of the world (children,
// network, steps, standard input) it gets through Call, and only if it was declared.
//
// The lifecycle of a call is one line, and invoke.go reads like it:
//
//	parse → environment → configuration → validate → confirm → once → run → shape → cut → write → record → exit
package contract
