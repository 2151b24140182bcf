// Package demo holds the demo of the built program to what it claims: what it says happened is done again from outside,
// by the commands that it shows, and the files are looked at. It also keeps the recording on the first page: go test
// ./test/demo -update writes that again.
package demo
