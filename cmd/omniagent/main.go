// Omniagent runs coding agents with one command line.
package main

import (
	"os"

	"omniagent/internal/cli/command"
)

func main() { os.Exit(command.Main()) }
