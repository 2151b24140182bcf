package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
)

// TestAWriteGoesOnlyWhereItWasDecided: what became a link since then, or leads elsewhere, is left alone.
func TestAWriteGoesOnlyWhereItWasDecided(t *testing.T) {
	y := newYard(t)
	y.put(t, "in/.git/hooks/run", oldText)
	y.link(t, "sub/deep", "docs")
	target, err := y.Resolve("docs/run")
	if err != nil || target != "sub/deep/run" {
		t.Fatalf("got %q, %v", target, err)
	}
	check(t, os.Remove(filepath.Join(y.in, "docs")))
	y.link(t, ".git/hooks", "docs")
	wantReason(t, "moved link", y.Replace("docs/run", []byte(newText), ReplaceOptions{Target: target}), "changed")
	wantContent(t, filepath.Join(y.in, ".git", "hooks", "run"), oldText)
	check(t, y.Replace("docs/run", []byte(newText), ReplaceOptions{Target: ".git/hooks/run"}))
	wantContent(t, filepath.Join(y.in, ".git", "hooks", "run"), newText)
	for name, want := range map[string]string{
		"none/x": "none/x", "docs": ".git/hooks", "docs/../x": ".git/x",
		".": ".",
	} {
		if got, err := y.Resolve(name); err != nil || got != want {
			t.Errorf("%s leads to %q, %v, want %q", name, got, err, want)
		}
	}
	kept := filepath.ToSlash(filepath.Join(y.top, "kept", "long"))
	if got, err := y.Resolve(kept); err != nil || got != kept {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = y.Resolve("sub/../../out")
	wantReason(t, "two dots", err, "outside")
}

// TestNoDirectoryOfAWriteIsALink looks at what is opened after the name was resolved.
func TestNoDirectoryOfAWriteIsALink(t *testing.T) {
	y := newYard(t)
	y.link(t, "sub", "within") // os.Root would follow it
	y.link(t, "../out", "without")
	for _, name := range []string{"within", "within/deep", "sub/../within", "without", "without/none"} {
		at, err := y.reach(name)
		if err == nil {
			_ = at.Close()
		}
		if name != "sub/../within" { // .. is in no resolved name; os.Root holds it
			wantReason(t, name, err, "changed")
		} else if err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	at, err := y.reach("new/a/b")
	check(t, err)
	check(t, at.Close())
	_, err = y.reach("file/a")
	wantReason(t, "file", err, "not-directory")
}

// TestTheLastLookIsWhereTheRenameWillBe: the name may lead elsewhere by then.
func TestTheLastLookIsWhereTheRenameWillBe(t *testing.T) {
	y := newYard(t)
	y.put(t, "in/a/file", oldText)
	_, seen, err := y.Load("a/file", 100)
	check(t, err)
	parent, err := y.reach("a")
	check(t, err)
	defer parent.Close()
	check(t, os.Rename(filepath.Join(y.in, "a"), filepath.Join(y.in, "b")))
	y.put(t, "in/a/file", oldText) // what the name says is as expected
	y.put(t, "in/b/file", "by somebody else")
	err = y.replaceIn(diskIn(parent, 0o600), parent, slot{"a/file", "file", nil}, []byte(newText), &seen)
	wantReason(t, "moved directory", err, "changed")
	wantContent(t, filepath.Join(y.in, "b", "file"), "by somebody else")
}

// TestWhereALinkLeadsIsNotLookedAtOutside: a link to a directory that mounts itself when it is looked at, or to a
// server that is gone, costs nothing. What tells is a link outside that would lead back in.
func TestWhereALinkLeadsIsNotLookedAtOutside(t *testing.T) {
	y := newYard(t)
	check(t, os.Symlink(y.in, filepath.Join(y.out, "back")))
	y.link(t, filepath.Join(y.out, "back", "file"), "roundabout")
	_, err := y.ReadFile("roundabout", 100)
	wantReason(t, "roundabout", err, "outside")
	if name, err := y.Name(filepath.Join(y.out, "back", "file")); err != nil || name != "file" { // a model may write it
		t.Errorf("got %q, %v", name, err)
	}
}

// TestTwoDotsInALinkGoUpFromWhereItLeads, as the system reads them.
func TestTwoDotsInALinkGoUpFromWhereItLeads(t *testing.T) {
	y := newYard(t)
	y.put(t, "in/sub/beside", newText)
	y.put(t, "in/beside", oldText)
	y.link(t, "sub/deep", "short")
	y.link(t, y.in+"/short/../beside", "absolute")
	y.link(t, "short/../beside", "relative")
	y.link(t, y.in+"/short/../../../out/secret", "escape")
	for _, name := range []string{"absolute", "relative"} {
		want, err := os.ReadFile(filepath.Join(y.in, name))
		check(t, err)
		if got, err := y.ReadFile(name, 100); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %q, %v, the system reads %q", name, got, err, want)
		}
	}
	_, err := y.ReadFile("escape", 100)
	wantReason(t, "escape", err, "outside")
}

func TestNamesAreShownClean(t *testing.T) {
	y := newYard(t)
	bad := "\x1b]0;title\x07a\nb\u202e\xff"
	_, err := y.ReadFile(bad, 100)
	for _, err := range []error{
		err, y.Replace(bad+"/..", nil, ReplaceOptions{}),
		func() error { _, err := y.Name("/" + bad); return err }(),
		func() error { _, err := y.Name(bad + "\x00"); return err }(),
	} {
		f := fault.Of(err)
		if message := f.Error() + f.Suggestion; err == nil || strings.ContainsAny(message, "\x1b\x07\n\u202e") ||
			!utf8.ValidString(message) {
			t.Errorf("%q", message)
		}
	}
}

// TestAbove reads what leads to a directory, and goes through no link from the root on.
func TestAbove(t *testing.T) {
	y := newYard(t)
	y.put(t, "rules", "above")
	y.put(t, "in/rules", "root")
	y.put(t, "out/rules", "outside")
	y.put(t, "in/sub/.git/info/exclude", "excluded")
	y.link(t, filepath.Join(y.out, "rules"), "sub/rules")
	y.link(t, "../out", "away")
	y.link(t, "sub/deep", "short")
	for name, want := range map[string]string{
		".": "above ", "sub/deep": "above root - ", "short": "above root - ",
		"away/x": "above root - ", "none/x": "above root - ",
	} {
		got := ""
		var last string
		full := y.Above(name, func(a *Parent) {
			last = a.Path
			if rel, err := filepath.Rel(y.top, a.Path); err != nil || strings.HasPrefix(rel, "..") {
				return
			}
			data, err := a.ReadFile("rules", 100)
			if err != nil {
				data = []byte("-")
			}
			got += string(data) + " "
			if strings.HasSuffix(a.Path, "sub") {
				if data, err := a.ReadFile(".git/info/exclude", 100); !a.Has(".git") || err != nil ||
					string(data) != "excluded" {
					t.Errorf("got %q, %v", data, err)
				}
			}
		})
		if got != want || last != filepath.Dir(full) {
			t.Errorf("%s: got %q up to %s for %s, want %q", name, got, last, full, want)
		}
	}
}
