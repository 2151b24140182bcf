// Package budget holds the program to its limits of start-up and size.
//
// Each limit of start-up is a ratio to another program that is measured in the same run, so that it means the same on
// every machine. The tests promise to fail only when the limit is exceeded in each of three attempts. "go run
// ./bench/startup" prints the same measurements side by side.
package budget
