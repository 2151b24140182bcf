// Package walls lets a model attack: the built program, a scripted model that tries one way out after the other, and
// what it was to reach looked at from outside, in each tier of walls that this machine has.
//
// It promises that each attack is one: the same line does its harm in a plain bash, or the test fails. It promises as
// well that each hole which a claim names is real, so that the list in the claim stays true. docs/threats.md says which
// class of attack is tried where.
package walls
