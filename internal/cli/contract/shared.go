package contract

import (
	_ "embed" // flags.txt
	"slices"
	"strconv"
	"strings"
	"sync"

	"omniagent/internal/kit/setting"
)

// Flags that more than one command has are declared once, in flags.txt. They are ordinary parameters for everything
// else: parsed, checked, documented and read like a command's own.
//
//go:embed flags.txt
var flagTable string

// sharedParam is a flag of the table, and which commands have it.
type sharedParam struct {
	Param
	scope string // a word that appliesTo knows
}

var sharedParams = sync.OnceValue(func() []sharedParam {
	var list []sharedParam
	for line := range strings.Lines(flagTable) {
		if declared, help, _ := strings.Cut(strings.TrimSpace(line), ": "); line[0] != '#' {
			words := strings.Fields(declared)
			p := Param{Name: words[2], Kind: Kind(words[3]), Help: help}
			for _, word := range words[4:] {
				p.set(strings.Cut(word, "="))
			}
			list = append(list, sharedParam{p, words[0]})
		}
	}
	return list
})

// set sets the field of a flag that a word of the table names.
func (p *Param) set(what, value string, _ bool) {
	n, _ := strconv.ParseInt(value, 10, 64)
	switch what {
	case "short":
		p.Short = value
	case "values":
		p.Enum = strings.Split(value, ",")
	case "default":
		p.Default = value
	case "length":
		p.MaxLen = int(n)
	case "max":
		p.Max = n
	case "also":
		p.Also = setting.Meaning(value)
	case "as":
		p.As = value
	case "common":
		p.Common = true
	case "sensitive":
		p.Sensitive = true
	}
}

// appliesTo reports whether a command has the flag.
func (s sharedParam) appliesTo(c *Command) bool {
	switch s.scope {
	case "changes":
		return c.Danger != Safe && !c.Dispatches
	case "destroys":
		return c.confirms()
	case "lasts":
		return c.LongRunning
	case "lists":
		return c.List != nil
	case "logs-in":
		return c.Auth != nil && c.Interactive
	case "networks":
		// A stream has a --connect-timeout of its own, which is also for agents.
		return c.Network != nil && !c.Network.Agents && (c.Class.enveloped() || s.Name != "connect-timeout")
	case "previews":
		return c.DryRun
	case "reads":
		return c.Stdin != nil
	case "recurses":
		return c.Recursive
	case "resumes":
		return len(c.Steps) > 0
	case "shows":
		return c.SafeDefault
	case "streams":
		return c.Class.streams()
	}
	return s.scope == "always"
}

// sharedUsed returns the shared flags that at least one command has.
func (p *Program) sharedUsed() []Param {
	var list []Param
	for _, s := range sharedParams() {
		if slices.ContainsFunc(p.All(), s.appliesTo) {
			list = append(list, s.Param)
		}
	}
	return list
}

// sharedFor returns the shared flags of one command.
func sharedFor(c *Command) []Param {
	var list []Param
	for _, s := range sharedParams() {
		always := s.Name == "help" || s.Name == "schema" || s.scope == "networks"
		if s.appliesTo(c) && (always || c.Class.enveloped()) {
			p := s.Param
			p.Global = true
			if p.Name == "limit" && c.List.Limit > 0 {
				p.Default = itoa(c.List.Limit)
			}
			list = append(list, p)
		}
	}
	return list
}

// allParams returns the command's own parameters, secrets in their two forms, and the shared ones.
func (c *Command) allParams() []Param {
	var list []Param
	for _, p := range c.Params {
		list = append(list, p.expand()...)
	}
	return append(list, sharedFor(c)...)
}
