package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/testkit/hermetic"
)

// stage is a part of a run that can be asked for by its name.
type stage struct {
	name  string
	title string
	alone bool // it has clocks, so nothing is downloaded while it runs
	run   func(*runner) bool
}

// stages returns all of them, in the order in which they run.
func stages(amounts map[string]string) []stage {
	return []stage{
		{"lint", "lint: formatting, analyzers, dead code, modules", false, (*runner).lint},
		{"build", "build: six targets", false, (*runner).build},
		{"test", "test: every test of every package", true, (*runner).test},
		{"kills", "kills: the shim, the native agent and a writer of sessions ended at " + amounts["KILLS"] +
			" random moments, runs at " + amounts["RUN_KILLS"] + " in five ways; links that move; " +
			amounts["WALLS_COMMANDS"] + " commands in walls", true, (*runner).kills},
		{"agents", "agents: the real ones on the scripted model", true, (*runner).realAgents},
		{"hosts", "hosts: the programs of others that drive us", true, (*runner).hosts},
		{"conformance", "conformance: every test that the tables name ran and passed", true, (*runner).conformance},
		{"packages", "packages: built twice with the same bytes, installed, run", true, (*runner).packages},
		{"fuzz", "fuzz: each target for " + amounts["FUZZTIME"], true, (*runner).fuzz},
	}
}

// call is what the command line and the environment ask for.
type call struct {
	quick, whole, long, help bool
	names                    []string          // stages; with quick, folders of internal
	amounts                  map[string]string // by variable
}

// amount is a variable that says how much of something is tried.
type amount struct {
	variable, usual, long string
	text                  bool // not a number
}

func amountsOf(long bool, getenv func(string) string) (map[string]string, error) {
	values := map[string]string{}
	for _, a := range []amount{
		{"KILLS", "30", "200", false},
		{"RUN_KILLS", "20", "200", false},
		{"FLOOD", "20", "100", false},
		{"RACE_SECONDS", "5", "5", false},
		{"ORACLE_SECONDS", "15", "600", false},
		{"UNDO_SCRIPTS", "", "1000", false},
		{"WALLS_COMMANDS", "1000", "10000", false},
		{"FUZZTIME", "0", "30s", true},
		{"OMNIAGENT_WHOLE", "", "matrices", true},
	} {
		value := getenv(a.variable)
		switch {
		case value == "" && long:
			value = a.long
		case value == "":
			value = a.usual
		}
		if n, err := strconv.Atoi(value); !a.text && value != "" && (err != nil || n < 0) {
			return nil, fmt.Errorf("%s is %q, not a number", a.variable, value)
		}
		values[a.variable] = value
	}
	return values, nil
}

// usage is what --help prints.
//
//go:embed usage.txt
var usage string

// parse reads the command line, in the root of the module.
func parse(args []string, getenv func(string) string) (c call, err error) {
	if len(args) > 0 {
		c.quick, c.whole, c.long = args[0] == "--quick", args[0] == "--whole", args[0] == "--long"
		c.help = args[0] == "--help" || args[0] == "-h"
	}
	if c.help {
		return c, nil
	}
	if c.quick || c.whole || c.long {
		args = args[1:]
	}
	c.names = args
	if c.amounts, err = amountsOf(c.long, getenv); err != nil {
		return c, err
	}
	if err = c.chooseTests(getenv); err != nil {
		return c, err
	}
	var known []string
	for _, s := range stages(nil) {
		known = append(known, s.name)
	}
	for _, name := range args {
		folder := filepath.Join("internal", filepath.FromSlash(name))
		if info, err := os.Stat(folder); c.quick && (err != nil || !info.IsDir()) {
			return c, fmt.Errorf("there is no folder internal/%s", name)
		}
		if !c.quick && !slices.Contains(known, name) {
			return c, fmt.Errorf("unknown argument %s: the stages are %s", name, strings.Join(known, " "))
		}
	}
	return c, nil
}

// parts is how many runs of scripts/test it takes to run each test that takes long once.
const parts = 3

// chooseTests decides which of the tests that take long run: those of the part whose turn it is, unless all are asked
// for.
func (c *call) chooseTests(getenv func(string) string) error {
	const variable = "OMNIAGENT_WHOLE"
	if c.whole {
		c.amounts[variable] = "1"
	}
	if c.amounts[variable] == "" {
		round, err := hermetic.RoundOf(getenv(hermetic.RoundVariable))
		if err != nil {
			return err
		}
		c.amounts[variable] = hermetic.PartOf(round, parts).String()
	}
	_, err := hermetic.ParsePart(c.amounts[variable])
	return err
}
