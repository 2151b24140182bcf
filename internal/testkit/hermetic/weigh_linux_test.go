package hermetic

import (
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	Weighing()
	os.Exit(m.Run())
}

// TestWeighed: what a program takes is counted, and not what the process of the tests has.
func TestWeighed(t *testing.T) {
	const ballast = 256 << 20
	ours := make([]byte, ballast)
	for i := 0; i < len(ours); i += os.Getpagesize() {
		ours[i] = 1
	}
	for _, tt := range []struct {
		script string
		large  bool
	}{
		{"exit 3", false},
		{`x=$(head -c 67108864 /dev/zero | tr '\0' x); exit 3`, true},
	} {
		cmd := exec.Command("/bin/sh", "-c", tt.script)
		cmd.Env = os.Environ()
		peak := Weighed(t, cmd)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
			t.Fatal(err)
		}
		if n := peak(); n >= ballast || n > 64<<20 != tt.large {
			t.Errorf("%s: %d MiB", tt.script, n>>20)
		}
	}
	if ours[0] != 1 {
		t.Error("the ballast is gone")
	}
}
