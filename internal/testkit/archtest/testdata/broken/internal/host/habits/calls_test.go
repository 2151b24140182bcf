package habits

import (
	"os"
	"os/exec"
)

// Tests may.
func tests() error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return exec.Command("sh", "-c", "true").Run()
}

func main() {
	os.Exit(hermetic.Sample(m, "TestThere", "TestGone"))
}

func TestThere(t *testing.T) {}

func helper(t *testing.T) { hermetic.Long(t) }
