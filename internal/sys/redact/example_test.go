package redact_test

import (
	"fmt"

	"omniagent/internal/sys/redact"
)

func ExampleString() {
	fmt.Println(redact.String("curl -H 'Authorization: Bearer 0123456789abcdef0123456789abcdef' https://example.com"))
	fmt.Println(redact.String("nothing that is secret"))
	// Output:
	// curl -H 'Authorization: [REDACTED]' https://example.com
	// nothing that is secret
}
