package review

import (
	"encoding/json"
	"net/url"
	"strings"
)

// SARIF returns the findings as a log of SARIF 2.1.0. A finding whose line is not in the diff has no location.
func SARIF(d Diff, findings []Finding, name, version string) ([]byte, error) {
	type object = map[string]any
	rules, results := []object{}, []object{}
	for _, s := range Severities() {
		rules = append(rules, object{
			"id": "review/" + string(s), "shortDescription": object{"text": "A " + string(s) + " of a review"},
			"defaultConfiguration": object{"level": s},
		})
	}
	for _, f := range findings {
		message := f.Title
		if detail := strings.TrimSpace(f.Detail); detail != "" {
			message += "\n\n" + detail
		}
		result := object{
			"ruleId": "review/" + string(f.Severity), "level": f.Severity, "message": object{"text": message},
		}
		if d.Has(f.File, f.Line) {
			result["locations"] = []object{{"physicalLocation": object{
				"artifactLocation": object{
					"uri": (&url.URL{Path: strings.TrimPrefix(f.File, "./")}).EscapedPath(), "uriBaseId": "%SRCROOT%",
				},
				"region": object{"startLine": f.Line},
			}}}
		} else {
			result["properties"] = object{"unplaced": true, "file": f.File, "line": f.Line}
		}
		results = append(results, result)
	}
	return json.MarshalIndent(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":    object{"driver": object{"name": name, "version": version, "rules": rules}},
			"results": results, "columnKind": "utf16CodeUnits",
		}},
	}, "", "  ")
}
