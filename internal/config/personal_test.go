package config

import (
	"errors"
	"path/filepath"
	"testing"

	"omniagent/internal/fault"
)

// TestAProjectDoesNotSetWhatIsPersonal: not even one whose content is trusted, and not through a context either.
func TestAProjectDoesNotSetWhatIsPersonal(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "[hand]\non = ['A']\n[context.c.hand]\non = ['C']\n")
	p.trust(p.project, "current_context = 'c'\n[hand]\non = ['EVIL']\n[context.c.hand]\non = ['WORSE']\n")
	o := p.options()
	o.Keys = append(o.Keys, Key{Name: "hand.on", Type: List, Personal: true})
	set, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := set.List("hand.on"); len(got) != 1 || got[0] != "C" {
		t.Errorf("got %q", got)
	}
	if w := set.Warnings(); len(w) != 2 || w[0].Code != PersonalKey || w[0].File != p.project || w[1].Line != 5 {
		t.Errorf("got %+v", w)
	}
	edit := Edit{Key: "hand.on", Keys: o.Keys, Value: "X", Root: p.repo, File: filepath.Join(p.repo, "x.toml")}
	if err := Check(edit, true); !errors.Is(err, fault.ArgError) {
		t.Errorf("got %v", err)
	}
	edit.Root = ""
	if err := Check(edit, true); err != nil {
		t.Errorf("in the user's file: %v", err)
	}
}
