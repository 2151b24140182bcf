package event_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"omniagent/internal/event"
)

// TestCallReadsBack byte for byte, also where its input is no JSON, and shows hosts the names that they know.
func TestCallReadsBack(t *testing.T) {
	const sent, canonical = `{ "path" : "a",  "path": "a<\u00e9" }`, `{"file_path":"a"}`
	for _, c := range []event.Call{
		{ID: "1", Name: "Read", Kind: event.Read, Path: "a", Input: json.RawMessage(sent)},
		{ID: "1", Input: json.RawMessage(sent), Canonical: json.RawMessage(canonical)},
		{ID: "1", Input: json.RawMessage(`{"half`)},
		{ID: "1"},
	} {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back event.Call
		if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%v, %s: %+v is not %+v", err, data, back, c)
		}
		shown := string(c.ForHosts().Input)
		if want := string(c.Input); c.Canonical == nil && shown != want || c.Canonical != nil && shown != canonical {
			t.Errorf("hosts see %s", shown)
		}
		if c.Canonical != nil && string(c.Object()) != canonical {
			t.Errorf("%s", c.Object())
		}
	}
}
