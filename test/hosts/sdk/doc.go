// Package sdk drives the program as hosts do that were written for Claude Code: through the public Agent SDK for
// JavaScript, which takes a program for Claude Code. The same script runs on Claude Code itself, where that is
// installed, so that what is asserted of us is what hosts know of it.
package sdk
