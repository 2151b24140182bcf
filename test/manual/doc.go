// Package manual holds tests only: what README.md and the pages of docs show is typed exactly as shown, in a
// terminal, by somebody with an empty home.
//
// A block of commands has to succeed. Of a block with answers each command has to answer so. Calls of agents that are
// not here are translated and not made; the model of the native agent is a script on this machine.
package manual
