package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

const canary = "sk-canary-5f1b2c9d8e7a"

// opened returns a store on the keyring of the tests, as on that system.
func opened(t *testing.T, goos string) Store {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no program of a keyring here")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret-tool", "security"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(stateVariable, filepath.Join(dir, "state"))
	by := process.Programs{Env: append(os.Environ(), "PATH="+dir, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere")}
	s := Store{file: filepath.Join(t.TempDir(), "config", fileName), system: systemOf(goos, by)}
	if s.system == nil {
		t.Fatal("there is no keyring")
	}
	return s
}

func (s Store) want(t *testing.T, name, key, from string) {
	t.Helper()
	got, where, err := s.Get(name)
	if got != key || err != nil || !strings.Contains(where, from) {
		t.Errorf("%s is %q in %q, %v", name, got, where, err)
	}
	if s.Has(name) != (key != "") {
		t.Errorf("%s is there: %v", name, s.Has(name))
	}
}

// secretless checks that no argument and no file has the key.
func (s Store) secretless(t *testing.T) {
	t.Helper()
	if args := strings.Join(readState().Args, " "); strings.Contains(args, canary) || args == "" {
		t.Errorf("the arguments: %s", args)
	}
	if data, err := os.ReadFile(s.file); err != nil || strings.Contains(string(data), canary) {
		t.Errorf("the file: %s, %v", data, err)
	}
}

func TestKeyring(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			s := opened(t, goos)
			s.want(t, "openai", "", "")
			place, why, was, err := s.Set(t.Context(), "openai", canary)
			if place != System || why != "" || was != "" || err != nil {
				t.Fatalf("got %s, %q, %q, %v", place, why, was, err)
			}
			s.want(t, "openai", canary, "keyring")
			s.secretless(t)
			if _, _, was, err = s.Set(t.Context(), "openai", canary+"2"); was != "keyring" || err != nil {
				t.Errorf("replaced %q, %v", was, err)
			}
			s.want(t, "openai", canary+"2", "keyring")
			if from, err := s.Remove(t.Context(), "openai"); from != System || err != nil {
				t.Errorf("removed from %q, %v", from, err)
			}
			s.want(t, "openai", "", "")
			if from, err := s.Remove(t.Context(), "openai"); from != "" || err != nil {
				t.Errorf("removed from %q, %v", from, err)
			}
		})
	}
}

func TestKeyringThatFails(t *testing.T) {
	s := opened(t, "linux")
	state{Locked: true}.write()
	place, why, _, err := s.Set(t.Context(), "openai", canary)
	if place != File || why == "" || err != nil || strings.Contains(why, canary) {
		t.Errorf("locked: %s, %q, %v", place, why, err)
	}
	s.want(t, "openai", canary, s.file)
	state{Loses: true}.write()
	if place, why, _, err = s.Set(t.Context(), "openai", canary); place != File || err != nil ||
		!strings.Contains(why, "did not keep it") {
		t.Errorf("it loses keys: %s, %q, %v", place, why, err)
	}
	// What it kept is moved, and is not left there.
	state{}.write()
	if place, _, _, err = s.Set(t.Context(), "openai", canary); place != System || err != nil {
		t.Fatalf("got %s, %v", place, err)
	}
	kept := readState()
	kept.Locked = true
	kept.write()
	if _, _, err = s.Get("openai"); !errors.Is(err, fault.AuthRequired) || strings.Contains(err.Error(), canary) {
		t.Errorf("locked: %v", err)
	}
	if _, err = s.Remove(t.Context(), "openai"); err == nil || !s.Has("openai") {
		t.Errorf("locked: %v", err)
	}
}

func TestNoKeyring(t *testing.T) {
	t.Parallel()
	s := Store{file: filepath.Join(t.TempDir(), "config", fileName)}
	for name, key := range map[string]string{"openai": canary, "a": "b"} {
		if place, _, _, err := s.Set(t.Context(), name, key); place != File || err != nil {
			t.Fatalf("got %s, %v", place, err)
		}
	}
	s.want(t, "openai", canary, s.file)
	all, err := s.List()
	if err != nil || len(all) != 2 || all[0].Name != "a" {
		t.Errorf("got %+v, %v", all, err)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(s.file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file: %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(s.file, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Get("openai"); !errors.Is(err, fault.Unsafe) || s.Has("openai") {
			t.Errorf("readable by others: %v", err)
		}
		if _, _, _, err := s.Set(t.Context(), "c", "d"); !errors.Is(err, fault.Unsafe) {
			t.Errorf("readable by others: %v", err)
		}
		_ = os.Chmod(s.file, 0o600)
	}
	if err := os.WriteFile(s.file, []byte(`{"version": 1, "keys": [`+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get("openai"); !errors.Is(err, fault.ConfigInvalid) || strings.Contains(err.Error(), canary) {
		t.Errorf("torn: %v", err)
	}
	if _, err := s.Remove(t.Context(), "openai"); err == nil {
		t.Error("a torn file is written over")
	}
	if _, _, _, err := (Store{}).Set(t.Context(), "a", "b"); !errors.Is(err, fault.NoHome) {
		t.Errorf("no home: %v", err)
	}
	if systemOf("linux", process.Programs{}) != nil || systemOf("windows", process.Programs{}) != nil {
		t.Error("there is a keyring without a program")
	}
}
