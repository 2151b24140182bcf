package schema_test

import (
	"fmt"

	"omniagent/internal/kit/schema"
)

func ExampleSchema_Validate() {
	s, err := schema.Parse([]byte(`{
		"type": "object",
		"properties": {"n": {"type": "integer"}},
		"required": ["n"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Validate([]byte(`{"n": 3}`)))
	fmt.Println(s.Validate([]byte(`{"n": "three"}`)))
	// Output:
	// <nil>
	// /properties/n: type: three has type "string", want "integer"
}
