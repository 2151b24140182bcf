// Package run drives omniagent run from outside: programs of a few lines stand in for agents, and the native agent
// works on a scripted model.
package run
