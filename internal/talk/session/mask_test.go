package session

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"omniagent/internal/llm/model"
)

// TestMaskedEverywhere: an API that gives a secret back as an identifier, a name or an input does not bring it into any
// file of a session, however the mask changes the text.
func TestMaskedEverywhere(t *testing.T) {
	const secret = "sk-canary-0123456789"
	for name, with := range map[string]string{"word": "***", "quotes": "\"}\n{", "backslash": `\`} {
		for at, blocks := range map[string][]model.Block{
			"call":   {{Kind: model.Call, ID: secret, Name: "Bash", Input: json.RawMessage(`{}`)}},
			"name":   {{Kind: model.Call, ID: "1", Name: secret, Input: json.RawMessage(`{}`)}},
			"input":  {{Kind: model.Call, ID: "1", Name: "Bash", Input: json.RawMessage(`{"a":"` + secret + `"}`)}},
			"result": {{Kind: model.Result, ID: secret, Text: "x"}},
			"text":   {{Kind: model.Text, Text: "the key is " + secret}},
		} {
			s := store(t)
			own := create(t, s, "x")
			own.Mask(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte(with)) })
			_, err := own.Append(Message{Message: model.Message{Role: model.Assistant, Blocks: blocks}})
			check(t, err)
			check(t, own.Close())
			for _, ending := range []string{projectionEnding, journalEnding} {
				data, err := os.ReadFile(s.file("x", ending))
				check(t, err)
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s, %s: %s has the secret: %s", name, at, ending, data)
				}
				if ending == projectionEnding && !json.Valid(data) {
					t.Errorf("%s, %s: %s", name, at, data)
				}
			}
		}
	}
}
