package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// suiteGroup is one schema of the official test suite, and values for it.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// TestSuite runs the official tests. Those in refusedGroups are refused by Parse; all others give the answers they ask
// for.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob("testdata/suite/*/*.json")
	if err != nil || len(files) != 83 {
		t.Fatal(len(files), err)
	}
	optional, err := filepath.Glob("testdata/suite/*/optional/*.json")
	if err != nil || len(optional) < 10 {
		t.Fatal(len(optional), err)
	}
	refused, tests := refusedGroups(), 0
	for _, name := range append(files, optional...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(name, err)
		}
		name = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "testdata/suite/"), ".json")
		for _, g := range groups {
			key := name + ": " + g.Description
			why, isRefused := refused[key]
			delete(refused, key)
			document := g.Schema
			if strings.HasPrefix(name, "draft7/") { // it does not say which draft it is of
				document = inDraft7(t, document)
			}
			s, err := Parse(document)
			switch {
			case isRefused && (err == nil || !strings.Contains(err.Error(), why)):
				t.Errorf("%s: want an error with %q, not %v", key, why, err)
			case !isRefused && err != nil:
				t.Errorf("%s: %v", key, err)
			case err == nil:
				for _, test := range g.Tests {
					tests++
					if strings.Contains(g.Description, `ECMA 262 \s`) ||
						strings.Contains(g.Description, `ECMA 262 \S`) {
						continue // Go's \s is that of ASCII
					}
					if err := s.Validate(test.Data); (err == nil) != test.Valid {
						t.Errorf("%s: %s: %v", key, test.Description, err)
					}
				}
			}
		}
	}
	for key := range refused {
		t.Errorf("there is no %s", key)
	}
	t.Logf("%d tests", tests)
}

func inDraft7(t *testing.T, document json.RawMessage) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil || members["$schema"] != nil {
		return document // true or false
	}
	members["$schema"] = json.RawMessage(`"http://json-schema.org/draft-07/schema#"`)
	data, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
