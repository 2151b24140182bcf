// Package eidolon knows the files of .eidolon, in a home directory and in a workspace: the prompts that a person keeps
// there as agents and commands, the words in a message that refer to them, and the record of each conversation.
//
// It promises that nothing of a workspace counts unless its exact content is trusted, that a file which cannot be read
// hides no other, and that a record on disk is whole up to its last message whenever the process dies.
//
// It knows no conversation and no terminal: it reads files and texts, and writes what it is handed.
package eidolon

import (
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// Folder is the name of the directory, in a home directory and in a workspace.
const Folder = ".eidolon"

// ProjectID returns the name of the directory in which the conversations about a workspace are kept.
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
		default: // as many as the character has units in UTF-16, as the original counts
			id.WriteString(strings.Repeat("_", utf16.RuneLen(r)))
		}
		slash = r == '/'
	}
	if name := strings.TrimLeft(id.String(), "-"); name != "" {
		return name
	}
	return "project"
}

// ConversationDir returns the directory in which the record of a conversation lies.
func ConversationDir(home, workspace, id string) string {
	return filepath.Join(home, Folder, "projects", ProjectID(workspace), "sessions", id)
}
