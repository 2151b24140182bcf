package review

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

const change = `diff --git a/a.go b/a.go
index 1..2 100644
--- a/a.go
+++ b/a.go
@@ -3,3 +3,4 @@ func f() {
 three
-four
+FOUR
+five
 six
@@ -20 +21 @@
-x
+y
\ No newline at end of file
diff --git a/gone.go b/gone.go
deleted file mode 100644
--- a/gone.go
+++ /dev/null
@@ -1,2 +0,0 @@
-one
--- two
diff --git "a/\303\266.go" "b/\303\266.go"
new file mode 100644
--- /dev/null
+++ "b/\303\266.go"
@@ -0,0 +1 @@
+++ new
diff --git a/old.go b/new.go
similarity index 100%
rename from old.go
rename to new.go
`

func TestParseDiff(t *testing.T) {
	d := ParseDiff(change)
	if got := slices.Sorted(maps.Keys(d.Files)); !slices.Equal(got, []string{"a.go", "gone.go", "new.go", "ö.go"}) {
		t.Errorf("files %q", got)
	}
	for file, want := range map[string][]int{
		"a.go": {3, 4, 5, 6, 21}, "gone.go": {1, 2}, "ö.go": {1}, "new.go": nil,
	} {
		if got := slices.Sorted(maps.Keys(d.Files[file].Lines)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", file, got, want)
		}
	}
	if !d.Has("./a.go", 5) || d.Has("a.go", 7) || d.Has("b.go", 1) {
		t.Error("Has is wrong")
	}
	for _, odd := range []string{
		"", "no diff", "@@ -1 +1 @@\n+x\n", "--- a\n+++ b\n@@ -a,b +c @@\n+x\n",
		"+++ b/x\n@@ @@\n",
	} {
		ParseDiff(odd)
	}
}

func FuzzParseDiff(f *testing.F) {
	f.Add(change)
	f.Fuzz(func(_ *testing.T, text string) { ParseDiff(text) })
}

func TestRead(t *testing.T) {
	const good = `{"file":"a.go","line":4,"severity":"error","title":"t","detail":"d"}`
	for _, c := range []struct {
		name, text       string
		findings, unread int
		whole            bool
	}{
		{"none", `{"findings":0}`, 0, 0, true},
		{"one", good + "\n{\"findings\":1}\n", 1, 0, true},
		{"in a fence", "```json\n" + good + "\n{\"findings\":1}\n```", 1, 0, true},
		{"nothing", "", 0, 0, false},
		{"no last line", good, 1, 0, false},
		{"a wrong number", good + "\n{\"findings\":2}", 1, 0, false},
		{"prose", "Here you are:\n" + good + "\n{\"findings\":1}", 1, 1, false},
		{"behind the end", "{\"findings\":0}\n" + good, 0, 1, false},
		{"an unknown member", `{"file":"a","line":1,"severity":"error","title":"t","mood":"bad"}` +
			"\n{\"findings\":0}", 0, 1, false},
		{"no line", `{"file":"a","severity":"error","title":"t"}` + "\n{\"findings\":0}", 0, 1, false},
		{
			"another severity", `{"file":"a","line":1,"severity":"critical","title":"t"}` + "\n{\"findings\":0}", 0, 1,
			false,
		},
		{"two on a line", good + good + "\n{\"findings\":0}", 0, 1, false},
		{
			"a number as text", `{"file":"a","line":"1","severity":"error","title":"t"}` + "\n{\"findings\":0}", 0, 1,
			false,
		},
	} {
		a := Read(c.text)
		if len(a.Findings) != c.findings || len(a.Unread) != c.unread || a.Whole != c.whole {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
}

func TestPrompt(t *testing.T) {
	p := Prompt(ParseDiff(change), "MARK-1", "the locks")
	if strings.Count(p, "MARK-1") != 3 || !strings.Contains(p, "the locks") || !strings.Contains(p, "+FOUR") {
		t.Error(p)
	}
}

func TestSARIF(t *testing.T) {
	findings := []Finding{
		{"a.go", 4, Error, "loud", "why"},
		{"a.go", 99, Note, "nowhere", ""},
		{"ö.go", 1, Warning, "umlaut", ""},
	}
	text, err := SARIF(ParseDiff(change), findings, "omniagent", "1")
	var log struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID, Level string
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &log)
	}
	if err != nil || log.Version != "2.1.0" || len(log.Runs[0].Results) != 3 {
		t.Fatal(err, string(text))
	}
	results := log.Runs[0].Results
	if l := results[0].Locations; len(l) != 1 || l[0].PhysicalLocation.Region.StartLine != 4 ||
		l[0].PhysicalLocation.ArtifactLocation.URI != "a.go" || results[0].Level != "error" {
		t.Errorf("%+v", results[0])
	}
	if len(results[1].Locations) != 0 || results[2].Locations[0].PhysicalLocation.ArtifactLocation.URI != "%C3%B6.go" {
		t.Errorf("%+v", results[1:])
	}
}

func TestWorst(t *testing.T) {
	if Worst(nil) != "" || Worst([]Finding{{Severity: Note}, {Severity: Error}, {Severity: Warning}}) != Error {
		t.Error("the worst is another")
	}
}
