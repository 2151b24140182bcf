package openai

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// TestVectors reads the streams of seed 2's vectors: pieces of calls are merged by their index, and arguments that are
// no object are kept as they came.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID, SSE, Text, Reasoning, Raw string
		Calls                         []struct {
			ID, Name string
			Input    map[string]any
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) != 6 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		a, err := canned{body: []byte(c.SSE)}.client(both()[0]).Ask(t.Context(), hello(), nil)
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		thought := ""
		for _, b := range a.Blocks {
			if b.Kind == model.Thinking {
				thought += b.Text
			}
		}
		if a.Text() != c.Text || thought != c.Reasoning || len(a.Calls()) != len(c.Calls) || !a.Usage.Estimated {
			t.Errorf("%s: %+v", c.ID, a)
			continue
		}
		for i, call := range a.Calls() {
			want := c.Calls[i]
			if call.ID != want.ID || call.Name != want.Name {
				t.Errorf("%s: %+v", c.ID, call)
			}
			if raw, broken := want.Input["__raw"]; broken {
				if call.Broken != raw || !strings.Contains(c.Raw, `{\"x`) {
					t.Errorf("%s: %+v", c.ID, call)
				}
				continue
			}
			var got map[string]any
			if err := json.Unmarshal(call.Input, &got); err != nil || !reflect.DeepEqual(got, want.Input) {
				t.Errorf("%s: %+v, %v", c.ID, call, err)
			}
		}
	}
}
