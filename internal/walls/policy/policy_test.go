package policy_test

import (
	"testing"

	"omniagent/internal/walls/policy"
)

// TestCheckNetwork refuses what nobody could say the meaning of.
func TestCheckNetwork(t *testing.T) {
	for network, good := range map[string]bool{
		"": true, "off": true, "on": true, "a.example": true, "a.example, *.b.example": true, "on.example": true,
		"one,offer": true, "packages,registry": true, "package": false, "Packages": false, "a.example,pakages": false,
		",": false, " ": false, ", ,": false, "ON": false, "Off": false, " on": false, "on,a.example": false,
		"off,on": false, "a.example,OFF": false, "on\n": false,
	} {
		if err := policy.CheckNetwork(network); (err == nil) != good {
			t.Errorf("%q: %v", network, err)
		}
	}
}
