// Command broken links a module.
package main

import (
	"example.com/dep"

	"broken/internal/cli/high"
)

func main() { println(dep.Zero, high.Zero) }
