package ident

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

func TestNamesDifferAndHaveTheirForm(t *testing.T) {
	t.Parallel()
	for form, of := range map[string]func() string{
		`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`: UUID,
		`^[0-9a-f]{24}$`: func() string { return Hex(12) },
		`^[0-9a-v]{26}$`: Ordered,
	} {
		met := map[string]bool{}
		for range 1000 {
			name := of()
			if met[name] || !regexp.MustCompile(form).MatchString(name) {
				t.Fatalf("got %q, met before: %v", name, met[name])
			}
			met[name] = true
		}
	}
}

func TestOrderedSortsByTime(t *testing.T) {
	t.Parallel()
	var names []string
	for range 5 {
		before := time.Now().Truncate(time.Millisecond)
		name := Ordered()
		if at, ok := TimeOf(name); !ok || at.Before(before) || at.After(time.Now()) {
			t.Errorf("%s was made at %v", name, at)
		}
		names = append(names, name)
		for began := time.Now().UnixMilli(); time.Now().UnixMilli() == began; {
		}
	}
	if !slices.IsSorted(names) {
		t.Fatalf("got %q", names)
	}
	for _, name := range []string{"", "1a2b3c4d", names[0][1:], "z" + names[0][1:]} {
		if at, ok := TimeOf(name); ok {
			t.Errorf("%q was made at %v", name, at)
		}
	}
}
