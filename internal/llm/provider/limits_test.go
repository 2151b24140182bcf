package provider

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// TestLongFiles: no file of any size is held in memory, and what is not read is told.
func TestLongFiles(t *testing.T) {
	home := t.TempDir()
	path := EidolonFiles(home)[1]
	login := filepath.Join(home, "credentials")
	for file, limit := range map[string]int64{path: maxEidolon, login: maxCredentials} {
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, limit+1); err != nil { // the rest is a hole
			t.Fatal(err)
		}
	}
	if told := ReadProfiles(home, "", nil).Notices; len(told) != 1 || !strings.Contains(told[0], "larger than") {
		t.Errorf("%q", told)
	}
	if _, _, err := (&google{file: login}).fromFile(t.Context()); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("%v", err)
	}
}
