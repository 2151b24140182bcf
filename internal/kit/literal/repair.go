package literal

import (
	"errors"
	"slices"
)

// Repair guesses the intended JSON. It repairs one missing comma, an unclosed quote and unclosed brackets, and gives up
// on anything else, because the caller must recognise the result.
func Repair(data []byte) (fixed string, ok bool) {
	const enough = 4 // a quote, a comma, a bracket in the middle, the brackets at the end
	commas := 0
	for range enough + 1 {
		v, err := ParseJSON5(data)
		if err == nil {
			return string(v.JSON()), true
		}
		syntax, is := errors.AsType[*SyntaxError](err)
		if !is || syntax.insert == "" {
			return "", false
		}
		if syntax.insert == "," {
			commas++
		}
		if commas > 1 {
			return "", false
		}
		data = slices.Concat(data[:syntax.at], []byte(syntax.insert), data[syntax.at:])
	}
	return "", false
}
