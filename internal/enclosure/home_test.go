package enclosure

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHomeOfTheAccount(t *testing.T) {
	list := filepath.Join(t.TempDir(), "passwd")
	text := "root:x:0:0:root:/root:/bin/sh\n# a " +
		"comment\nann:x:1000:1000::/home/ann/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\ntorn:x:7\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int]string{0: "/root", 1000: "/home/ann", 65534: "", 7: "", 3: ""} {
		if got := accountHome(list, uid); got != want {
			t.Errorf("%d lives in %q", uid, got)
		}
	}
	if got := accountHome(list+".not", 0); got != "" {
		t.Errorf("%q", got)
	}
}

// TestAnotherHome: who sets HOME does not show what lies in the home directory of the account.
func TestAnotherHome(t *testing.T) {
	account := accountHome("/etc/passwd", os.Getuid())
	if account == "" {
		t.Skip("the list of users on this machine does not name this one")
	}
	for _, home := range []string{"", t.TempDir(), account} {
		hidden := Credentials(nil, home)
		if !slices.Contains(hidden, filepath.Join(account, ".ssh")) || home != "" &&
			!slices.Contains(hidden, filepath.Join(home, ".ssh")) {
			t.Errorf("HOME=%s hides %v", home, hidden)
		}
		slices.Sort(hidden)
		if len(slices.Compact(slices.Clone(hidden))) != len(hidden) {
			t.Errorf("HOME=%s hides something twice", home)
		}
	}
}
