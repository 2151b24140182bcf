package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
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
	if w := set.Warnings(); len(w) != 2 || w[0].Code != PersonalKey || w[1].Line != 5 ||
		!strings.HasPrefix(w[0].Message, p.project+":") {
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

// TestEverywhere: a layer below does not vanish behind the one above.
func TestEverywhere(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "[hand]\non = ['A', 'B']\n")
	p.trust(p.project, "[hand]\non = ['C']\n")
	o := p.options()
	o.Keys = append(o.Keys, Key{Name: "hand.on", Type: List, Env: "HAND_ON"})
	o.Getenv = func(name string) (string, bool) { return "D", name == "HAND_ON" }
	set, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, v := range set.Everywhere("hand.on") {
		said = append(said, v.Text)
	}
	if got := strings.Join(said, " "); got != "D C A,B" {
		t.Errorf("got %q", got)
	}
	if got := set.List("hand.on"); len(got) != 1 || got[0] != "D" {
		t.Errorf("got %q", got)
	}
}
