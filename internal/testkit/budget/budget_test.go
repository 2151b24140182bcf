package budget

import (
	"testing"
	"time"

	"omniagent/internal/testkit/measure"
)

// The limits.
const (
	maxStart = 3.0 // median time of --version, as a multiple of an empty program's
	// work of package initialisation, as a multiple of that of a program that imports net/http; measured 2.1 to 2.4,
	// more on a busy machine
	maxInit       = 3.0
	maxThirdParty = 0.4        // share of one package from elsewhere in the same measure
	maxSize       = 25_000_000 // bytes, stripped, without cgo

	attempts  = 3
	startRuns = 25
	initRuns  = 9
)

const root = "../../.."

func TestStart(t *testing.T) {
	program, empty := built(t), source(t, "empty", measure.Empty)
	var ours, theirs time.Duration
	for range attempts {
		times, err := measure.Runs(startRuns, program, empty)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs = least(ours, times[0].Median()), least(theirs, times[1].Median())
		ratio := float64(ours) / float64(theirs)
		t.Logf("--version %v, an empty program %v: %.2f times", ours, theirs, ratio)
		if ratio <= maxStart {
			return
		}
	}
	t.Errorf("--version takes %v, more than %v times the %v of an empty program", ours, maxStart, theirs)
}

func TestInit(t *testing.T) {
	program, http := built(t), source(t, "http", measure.HTTP)
	var ours, theirs time.Duration
	packages, alone := map[string]time.Duration{}, map[string]time.Duration{}
	var heavy []string
	for range attempts {
		inits, err := measure.Inits(initRuns, program, http)
		if err != nil {
			t.Fatal(err)
		}
		// Package by package, so that what else the machine did in one of them does not count.
		ours, theirs = quietest(packages, inits[0]), quietest(alone, inits[1])
		heavy = nil
		for _, p := range inits[0].Packages {
			if p.ThirdParty() && float64(packages[p.Path]) > maxThirdParty*float64(theirs) {
				heavy = append(heavy, p.Path)
			}
		}
		ratio := float64(ours) / float64(theirs)
		t.Logf("package initialisation %v, with net/http alone %v: %.2f times", ours, theirs, ratio)
		if ratio <= maxInit && len(heavy) == 0 {
			return
		}
	}
	if float64(ours) > maxInit*float64(theirs) {
		t.Errorf("package initialisation takes %v, more than %v times the %v of a program with net/http", ours, maxInit,
			theirs)
	}
	for _, path := range heavy {
		t.Errorf("the initialisation of %s takes %v, more than its share of the %v of a program with net/http", path,
			packages[path], theirs)
	}
}

// quietest keeps the least time of each package, and returns the sum.
func quietest(packages map[string]time.Duration, is measure.Init) (sum time.Duration) {
	for _, p := range is.Packages {
		packages[p.Path] = least(packages[p.Path], p.Took)
	}
	for _, took := range packages {
		sum += took
	}
	return sum
}

func TestSize(t *testing.T) {
	size, err := built(t).Size()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", size)
	if size > maxSize {
		t.Errorf("the program has %d bytes, more than %d", size, maxSize)
	}
}

// least is the smaller one; zero stands for none yet.
func least(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// built builds the program.
func built(t *testing.T) measure.Program {
	t.Helper()
	if err := measure.Sources(root); err != nil {
		t.Fatal(err)
	}
	program, err := measure.Shared(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program.With("--version")
}

func source(t *testing.T, name, text string) measure.Program {
	t.Helper()
	program, err := measure.BuildSource(name, text, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program
}
