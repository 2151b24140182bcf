package contract

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// The published schemas decide whether what is printed is valid. They are in testdata, unchanged.

// published reads one of the schemas; those that it refers to are in the same directory, under the last element of
// their address.
var published = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	load := func(uri *url.URL) (*jsonschema.Schema, error) {
		data, err := os.ReadFile(filepath.Join("testdata", "schemas", filepath.Base(uri.Path)))
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		return &s, json.Unmarshal(data, &s)
	}
	all := map[string]*jsonschema.Resolved{}
	for _, name := range []string{"response-envelope.json", "manifest-response.json", "exit-code-entry.json"} {
		s, err := load(&url.URL{Path: name})
		if err != nil {
			return nil, err
		}
		if all[name], err = s.Resolve(&jsonschema.ResolveOptions{
			BaseURI: "https://schemas.invalid/" + name,
			Loader:  load,
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
})

func validate(name string, data []byte) error {
	all, err := published()
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return all[name].Validate(v)
}

// validEnvelope checks that standard output is one line with one envelope, that the published schema accepts it, and
// that what it says of itself agrees: ok, error and the exit code. It returns the envelope.
func validEnvelope(t *testing.T, stdout string) map[string]any {
	t.Helper()
	if err := envelopeError(stdout); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	var e map[string]any
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

type untrue string

func (u untrue) Error() string { return "the envelope is not true: " + string(u) }

func envelopeError(stdout string) error {
	if strings.Count(stdout, "\n") != 1 || !strings.HasSuffix(stdout, "\n") {
		return untrue("it is not one line")
	}
	if err := validate("response-envelope.json", []byte(stdout)); err != nil {
		return err
	}
	var e struct {
		OK    bool `json:"ok"`
		Error *struct {
			Code string `json:"code"`
			Exit *int   `json:"exit_code"`
		} `json:"error"`
		Meta struct {
			OK   *bool `json:"ok"`
			Exit *int  `json:"exit_code"`
		} `json:"meta"`
	}
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		return err
	}
	switch {
	case e.OK != (e.Error == nil):
		return untrue("ok and error disagree")
	case e.Meta.Exit == nil || e.OK != (*e.Meta.Exit == 0):
		return untrue("ok and meta.exit_code disagree")
	case e.Meta.OK == nil || *e.Meta.OK != e.OK:
		return untrue("ok and meta.ok disagree")
	case e.Error != nil && (e.Error.Exit == nil || *e.Error.Exit != *e.Meta.Exit):
		return untrue("error.exit_code and meta.exit_code disagree")
	}
	return nil
}

// validManifest checks a manifest, or one that was decoded from an answer, against its published schema.
func validManifest(t *testing.T, data any) {
	t.Helper()
	raw, isRaw := data.([]byte)
	if !isRaw {
		var err error
		if raw, err = json.Marshal(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := validate("manifest-response.json", raw); err != nil {
		t.Fatalf("%v\n%.2000s", err, raw)
	}
}

// The schemas must refuse what is wrong, or the other tests prove nothing.
func TestPublishedSchemas(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string][2]string{
		"no warnings": {
			"response-envelope.json",
			`{"ok":true,"data":null,"error":null,"meta":{"duration_ms":1}}`,
		},
		"a further member": {
			"response-envelope.json",
			`{"ok":true,"data":null,"error":null,"warnings":[],"meta":{"duration_ms":1},"more":1}`,
		},
		"data is a string": {
			"response-envelope.json",
			`{"ok":true,"data":"x","error":null,"warnings":[],"meta":{"duration_ms":1}}`,
		},
		"duration is text": {
			"response-envelope.json",
			`{"ok":true,"data":null,"error":null,"warnings":[],"meta":{"duration_ms":"1"}}`,
		},
		"no code": {
			"response-envelope.json",
			`{"ok":false,"data":null,"error":{"message":"x"},"warnings":[],"meta":{"duration_ms":1}}`,
		},
		"retry and effects": {
			"manifest-response.json",
			`{"schema_version":"1.0","framework_version":"1","etag":"x","commands":{"a":{"description":"d","danger_level":"safe","flags":{},"exit_codes":{"0":{"description":"d","retryable":true,"side_effects":"partial"}}}}}`,
		},
		"an odd danger": {
			"manifest-response.json",
			`{"schema_version":"1.0","framework_version":"1","etag":"x","commands":{"a":{"description":"d","danger_level":"odd","flags":{},"exit_codes":{}}}}`,
		},
	} {
		if validate(wrong[0], []byte(wrong[1])) == nil {
			t.Errorf("%s: %s is accepted", name, wrong[1])
		}
	}
	if err := validate("response-envelope.json",
		[]byte(`{"ok":true,"data":null,"error":null,"warnings":[],"meta":{"duration_ms":1}}`)); err != nil {
		t.Error(err)
	}
}

// schemaFrom returns the schema in an answer, ready to validate with.
func schemaFrom(t *testing.T, v any) *jsonschema.Resolved {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("no schema: %v: %s", err, raw)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("no schema: %v: %s", err, raw)
	}
	return resolved
}
