// Package hostile lets the built program work in repositories that try everything which a repository's files can try.
package hostile
