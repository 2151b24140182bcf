// Package knowledge adds to the program what it does not know: a sixth agent, a fifth model API and one more tool.
//
// It promises that each is one value in a list: this package makes them in files of its own, puts them into the lists
// of which the program is made, and drives that program as a user does. It refuses to change anything else.
package knowledge
