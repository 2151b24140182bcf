module omniagent

go 1.26.0

require (
	github.com/creack/pty v1.1.24 // tests: real pseudo terminals
	github.com/google/go-cmp v0.7.0 // tests: readable differences
	github.com/google/jsonschema-go v0.4.3 // --output-schema and answers in a form; 0.14 ms of init
	github.com/klauspost/compress v1.20.4 // flate: what undo keeps, in half of the time; 0.04 ms of init, 0.2 MB
	github.com/pelletier/go-toml/v2 v2.4.3 // the TOML parser behind config edits that keep comments; 5 µs of init
	github.com/rivo/uniseg v0.4.7 // how wide a text is on a terminal: grapheme clusters; no init, 0.2 MB of tables
	github.com/rogpeppe/go-internal v1.16.0 // tests: scripts that read like the manual
	github.com/spf13/cobra v1.10.2 // parsing and shell completion; 0.02 ms of init
	github.com/spf13/pflag v1.0.9 // cobra's flags, declared from our own data
	golang.org/x/net v0.62.0 // html: the tokenizer of the web's own rules, for pages; 0.09 ms of init
	golang.org/x/sys v0.49.0 // landlock, seccomp, flock, pidfd: what syscall lacks
	golang.org/x/term v0.47.0 // is this a terminal; a few lines a platform
	mvdan.cc/sh/v3 v3.14.1 // bash as a syntax tree, for guard; 0.07 ms of init, 0.5 MB with what only it needs
	pgregory.net/rapid v1.3.0 // tests: properties with shrinking
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	golang.org/x/tools v0.38.0 // indirect
)
