// Package script shows the commands as a person meets them: each script in testdata/script is a page of the manual that
// runs.
//
// It promises that the program in the scripts is the real one, with its own main. It refuses scripts that look inside:
// what they read is standard output, standard error and files.
package script
