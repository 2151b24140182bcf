package hermetic

import "flag"

// AtOnce lets n parallel tests of a package run at once, unless -parallel says how many. It is for tests that mostly
// wait for processes and clocks: with one for each processor, the processors are idle. Call it in TestMain, after the
// binary has played other programs.
func AtOnce(n string) {
	flag.Parse()
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", n)
	}
}
