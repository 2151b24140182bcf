// Command vet holds the analyzers of golang.org/x/tools that "go vet" leaves out and that find real mistakes.
// It takes package patterns, tests included, and prints nothing when all is well.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/reflectvaluecompare"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
)

func main() {
	multichecker.Main(nilness.Analyzer, reflectvaluecompare.Analyzer, unusedwrite.Analyzer)
}
