package process

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongRegister: a child that was started after thousands of others is found, and a line of any length is not held.
func TestLongRegister(t *testing.T) {
	var data bytes.Buffer
	out := json.NewEncoder(&data)
	write := func(e registerLine) {
		if err := out.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7000 {
		one := registerLine{PID: i + 2, Argv0: "sh", Identity: "boot 1"}
		write(one)
		one.Ended = true
		write(one)
	}
	if data.Len() < 1<<20 {
		t.Fatalf("%d bytes are few", data.Len())
	}
	write(registerLine{PID: 70_000, Argv0: strings.Repeat("x", longestEntry)})
	write(registerLine{PID: 70_001, Argv0: "sleep"})
	path := filepath.Join(t.TempDir(), "register")
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := readEntries(path); len(all) != 1 || all[0].PID != 70_001 {
		t.Errorf("%d children: %+v", len(all), all[:min(len(all), 3)])
	}
}
