package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestBeside checks that only runs that worked in the same directory at the same time count as beside a run.
func TestBeside(t *testing.T) {
	s, at := Store{Dir: t.TempDir()}, time.Now().UTC()
	put := func(id, dir string, from, to time.Duration) Record {
		r := Record{Version: version, ID: id, Task: Task{Dir: dir}, State: Succeeded}
		r.Attempts = []Attempt{{Began: at.Add(from)}}
		r.Result = &Result{Ended: at.Add(to)}
		data, err := json.Marshal(r)
		if err == nil {
			err = os.MkdirAll(s.Path(id), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(s.Path(id), recordFile), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := put("run-1", "/w", 0, time.Minute)
	put("run-2", "/w", time.Second, time.Hour)
	put("run-3", "/w", -time.Hour, -time.Second)
	put("run-4", "/w", time.Hour, 2*time.Hour)
	put("run-5", "/elsewhere", 0, time.Minute)
	put("run-6", "/w/sub", 0, time.Second)
	if got := s.Beside(r); !slices.Equal(got, []string{"run-2", "run-6"}) {
		t.Errorf("%v", got)
	}
}
