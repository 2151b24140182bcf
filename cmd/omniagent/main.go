// Omniagent puts coding agents behind one command line that people and programs can trust.
package main

import (
	"os"

	"omniagent/internal/cli/command"
)

func main() { os.Exit(command.Main()) }
