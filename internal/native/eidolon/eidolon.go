// Package eidolon reads and writes the files of .eidolon, in a home directory and in a workspace: prompts that are
// agents and commands, the words in a message that refer to them, and the record of each conversation.
//
// It promises that a prompt of a workspace is used only if its exact content is trusted, that an unreadable file does
// not hide others, and that a record on disk is complete up to its last message whenever the process dies.
//
// It depends on neither conversations nor terminals.
package eidolon

import (
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// Folder is the name of the directory, in a home directory and in a workspace.
const Folder = ".eidolon"

// ProjectID returns the name of the directory for the conversations about a workspace.
func ProjectID(dir string) string {
	dir = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(dir)), `\`, "/")
	var id strings.Builder
	slash := false
	for _, r := range dir {
		switch {
		case r == '/' && slash:
		case r == '/':
			id.WriteByte('-')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			id.WriteRune(r)
		default: // the original counts in units of UTF-16
			id.WriteString(strings.Repeat("_", utf16.RuneLen(r)))
		}
		slash = r == '/'
	}
	if name := strings.TrimLeft(id.String(), "-"); name != "" {
		return name
	}
	return "project"
}

// ConversationDir returns the directory of the record of a conversation.
func ConversationDir(home, workspace, id string) string {
	return filepath.Join(home, Folder, "projects", ProjectID(workspace), "sessions", id)
}
