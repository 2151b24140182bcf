package native_test

import (
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
)

// TestSchema: what the model can answer by a call is held by the engine; the rest stands in the prompt. What was held
// is told apart from the words.
func TestSchema(t *testing.T) {
	for schema, held := range map[string]bool{
		`{"type":"object"}`: true, `{"type":"array"}`: false, `{}`: false,
		``: false, `nonsense`: false,
		`{"type":"object","title":"` + strings.Repeat("x", 16<<10) + `"}`: false,
	} {
		s := agent.Spec{Mode: setting.OneShot, Shared: setting.Defaults(), Schema: []byte(schema)}
		launch, _, err := native.New("1", provider.APIs()).Command(s)
		if err != nil {
			t.Fatal(err)
		}
		if passed := slices.Contains(launch.Args, "--json-schema="+schema); passed != held || launch.Native != held {
			t.Errorf("%q: passed %t, told %t", schema, passed, launch.Native)
		}
	}
	decoder := native.New("1", provider.APIs()).Decode(setting.StreamJSON)
	var last event.Event
	line := `{"type":"result","subtype":"success","result":"seven","structured_output":{"n":7}}`
	for _, e := range decoder.Feed([]byte(line + "\n")) {
		last = e
	}
	if last.End == nil || string(last.End.Structured) != `{"n":7}` {
		t.Errorf("%+v", last)
	}
}

// TestInteractiveIsChat: a person at a terminal gets the same as from the command chat.
func TestInteractiveIsChat(t *testing.T) {
	launch, _, err := native.New("1", provider.APIs()).Command(
		agent.Spec{Mode: setting.Interactive, Shared: setting.Defaults()})
	if err != nil || !slices.Contains(launch.Args, "chat") || slices.Contains(launch.Args, "--plain") {
		t.Errorf("%q, %v", launch.Args, err)
	}
}
