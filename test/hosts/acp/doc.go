// Package acp drives the built program as editors do: over the Agent Client Protocol, with a client of ours that also
// breaks every rule, and with clients of others, which scripts/hosts installs and OMNIAGENT_TEST_HOSTS names the
// directory of.
package acp
