// Omniagent puts coding agents behind one command line that people and programs can trust.
package main

import (
	"fmt"
	"os"

	"omniagent/internal/command"
)

func main() {
	program, err := command.Program()
	if err != nil {
		fmt.Fprintln(os.Stderr, "omniagent:", err)
		os.Exit(1)
	}
	os.Exit(program.Main())
}
