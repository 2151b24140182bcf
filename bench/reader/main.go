// Command reader prints what a client costs that stops reading for a minute while an agent says 100 MB: the memory of
// the program and the time of the turn, beside a client that reads. It is law 13 of internal/testkit/agenttest with
// other numbers.
//
//	go run ./bench/reader
//	go run ./bench/reader -host nested -megabytes 20 -stopped 10s
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	host := flag.String("host", "flat", "the host, as internal/testkit/agenttest names it")
	megabytes := flag.Int("megabytes", 100, "how much the agent says")
	stopped := flag.Duration("stopped", time.Minute, "how long nothing is read")
	flag.Parse()
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout=1h", "-run=^TestStoppedReader$/"+*host,
		"./internal/testkit/agenttest")
	cmd.Env = append(os.Environ(), fmt.Sprint("OMNIAGENT_FLOOD=", *megabytes),
		fmt.Sprint("OMNIAGENT_STOPPED=", *stopped))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
}
