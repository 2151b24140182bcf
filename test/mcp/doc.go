// Package mcp is omniagent mcp as its clients see it: our own client, lines that nobody should send, and clients that
// go away.
package mcp
