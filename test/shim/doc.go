// Package shim calls the built program as a person does who wants a coding agent: with stub agents on PATH, in pipes
// and in pseudo terminals, with good and bad arguments, and with a gun.
package shim
