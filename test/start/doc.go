// Package start holds the native agent as programs drive it against what it promises: the built program, real files and
// commands, and model APIs that this package serves itself.
package start
