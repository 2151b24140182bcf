package run

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLostLogs: a reflog is missed only as long as its ref is there.
func TestLostLogs(t *testing.T) {
	const commit = "1111111111111111111111111111111111111111"
	for name, c := range map[string]struct {
		log, file, text string
		lost            int
	}{
		"nothing is there":          {"refs/heads/a", "config", "", 0},
		"a loose ref":               {"refs/heads/a", "refs/heads/a", commit, 1},
		"a packed ref":              {"refs/heads/a", "packed-refs", commit + " refs/heads/a\n", 1},
		"a packed ref at the end":   {"refs/heads/a", "packed-refs", commit + " refs/heads/a", 1},
		"another branch":            {"refs/heads/a", "packed-refs", commit + " refs/heads/a/b\n", 0},
		"a directory with a branch": {"refs/heads/a", "refs/heads/a/b", commit, 0},
		"HEAD":                      {"HEAD", "HEAD", "ref: refs/heads/main\n", 1},
		"a log that is there":       {"refs/heads/a", "logs/refs/heads/a", "", 0},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if lost := (holding{Dir: dir, Common: dir, Logs: []string{c.log}}).lostLogs(); lost != c.lost {
			t.Errorf("%s: %d", name, lost)
		}
	}
}
