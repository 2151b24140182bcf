package allow

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

func put(t *testing.T, path, text string) string {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = hermetic.WriteProgram(path, []byte(text), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// settled returns the hash of a file once its last change is long enough ago.
func settled(t *testing.T, path string) File {
	t.Helper()
	for deadline := time.Now().Add(hermetic.Patience); time.Now().Before(deadline); {
		if f, err := Digest(path); err != nil || f.Status != 0 {
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatal("the file is always new")
	return File{}
}

func TestAgain(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "program"), "one")
	fresh, err := Digest(path)
	if err != nil {
		t.Fatal(err)
	}
	if now, same := fresh.Again(); !same || now.SHA256 != fresh.SHA256 {
		t.Errorf("new: %+v", now)
	}
	forged := fresh
	forged.SHA256 = "not the hash"
	if _, same := forged.Again(); same {
		t.Error("a file that has just changed was not read")
	}
	was := settled(t, path)
	if now, same := was.Again(); !same || now != was {
		t.Errorf("untouched: %+v", now)
	}
	// What is recorded counts, and not the content, as long as nothing else differs: the file is not read again.
	forged = was
	forged.SHA256 = "not the hash"
	if now, same := forged.Again(); !same || now != forged {
		t.Errorf("the file was read: %+v", now)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if now, same := was.Again(); !same || now == was || now.SHA256 != was.SHA256 {
		t.Errorf("touched: %+v", now)
	}
	now := settled(t, path)
	if again, same := now.Again(); !same || again != now {
		t.Errorf("touched, with its new times: %+v", again)
	}
	if runtime.GOOS == "windows" {
		t.Skip("the time of the last change of the status is that of POSIX")
	}
	// Another content of the same size, with the time set back.
	put(t, path, "two")
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if _, same := now.Again(); same {
		t.Error("another content with the old time is the same")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, same := now.Again(); same {
		t.Error("a file that has gone is the same")
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(path); err == nil {
		t.Error("a directory has a hash")
	}
}

func TestOfPackage(t *testing.T) {
	dir := t.TempDir()
	script := put(t, filepath.Join(dir, "agent", "bin", "agent.js"), "#!/usr/bin/env node\n")
	manifest := put(t, filepath.Join(dir, "agent", "package.json"), `{"name":"agent","version":"1"}`)
	files, err := Fingerprint(script)
	if err != nil || len(files) != 2 || files[0].Path != script || files[1].Path != manifest {
		t.Fatalf("%+v, %v", files, err)
	}
	if !SameFiles(files, script) || SameFiles(files, manifest) || SameFiles(nil, script) {
		t.Error("the same program is another one")
	}
	put(t, manifest, `{"name":"agent","version":"2"}`)
	if SameFiles(files, script) {
		t.Error("another version is the same program")
	}
}
