// Package agents runs the real coding agents, at pinned versions, on the scripted model: what the tables of the drivers
// claim is compared with what happens on disk and in the exit code. Nothing of it needs a login or reaches a network.
//
// It needs the directory that scripts/agents installs into, named by OMNIAGENT_TEST_AGENTS.
package agents
