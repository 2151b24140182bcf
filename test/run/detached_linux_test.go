package run

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// opened serves a port of a fork outside of it, and returns the address.
func (p *place) opened(fork, port string) (address string, stop func()) {
	p.t.Helper()
	relay := p.command("fork", "open", fork, port)
	out, err := relay.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := relay.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the relay to %s: %v", fork, err)
	}
	return strings.TrimSpace(line), func() {
		_ = relay.Process.Signal(syscall.SIGTERM)
		if err := relay.Wait(); err != nil {
			p.t.Errorf("the relay: %v", err)
		}
	}
}

// TestDetachedRunsInForksServe leaves two runs behind, each of which serves port 3000 in its fork.
func TestDetachedRunsInForksServe(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, which serves")
	}
	p := newPlace(t)
	p.agent("serves", "cat >page.html; exec "+python+" -m http.server 3000 --bind 127.0.0.1 >/dev/null 2>&1")
	unchanged := p.untouched()
	var runs []string
	for _, task := range []string{"first", "second"} {
		a := p.call("run", "--agent", "serves", "--yolo", "--fork", "--detach", "-p", task, "--idle-timeout", "0s")
		if a.Code != 0 || a.Data.ID == "" || !strings.Contains(a.Stdout, `"job_id":"run-`) {
			t.Fatalf("%s", a)
		}
		runs = append(runs, a.Data.ID)
	}
	for i, task := range []string{"first", "second"} {
		p.reaches(runs[i], "running")
		address, stop := p.opened([]string{"work-1", "work-2"}[i], ":3000")
		var text []byte
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			answer, err := http.Get(address + "/page.html")
			if err != nil {
				continue // the agent does not listen yet
			}
			text, _ = io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			break
		}
		if !strings.Contains(string(text), task) {
			t.Errorf("%s serves %q", task, text)
		}
		stop()
	}
	for _, id := range runs {
		p.fork(0, "runs", "cancel", id)
		p.reaches(id, "cancelled")
	}
	unchanged()
	p.nothing()
}

// TestADetachedRunInAForkAsks answers what a detached run in a fork asks, and brings home what it did.
func TestADetachedRunInAForkAsks(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >answer.txt; echo "I wrote it."`)
	unchanged := p.untouched()
	asked := p.run("scribe", "--yolo", "--fork", "--detach", "--require", "colour=Which colour?")
	asked.is(t, 4, "needs_input", asked.Data.Reason)
	left := p.call("answer", asked.Data.ID, "blue", "--detach")
	if left.Code != 0 || left.Data.Status == "needs_input" {
		t.Errorf("%s", left)
	}
	p.reaches(asked.Data.ID, "succeeded")
	again := p.call("runs", "retry", asked.Data.ID, "--detach")
	if again.Code != 0 || again.Data.ID == asked.Data.ID {
		t.Errorf("%s", again)
	}
	p.reaches(again.Data.ID, "succeeded")
	unchanged()
	p.fork(0, "runs", "apply", again.Data.ID)
	if got := p.read("answer.txt"); !strings.Contains(got, "blue") {
		t.Errorf("%q", got)
	}
	p.nothing()
}

// TestADetachedRunInAForkIsKilled kills the process that was left behind: the end is unknown, and the fork stays.
func TestADetachedRunInAForkIsKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.agent("waits", "cat >/dev/null; echo 1 >new.txt; : >"+p.home+"/at; mkfifo w; read x <w")
	a := p.run("waits", "--yolo", "--fork", "--detach", "--idle-timeout", "0s")
	if a.Code != 0 {
		t.Fatalf("%s", a)
	}
	p.exists("../home/at")
	shown := p.fork(0, "fork", "list")
	if len(shown.Data.Forks) != 1 || len(shown.Data.Forks[0].Running) != 1 {
		t.Fatalf("%+v", shown)
	}
	_ = syscall.Kill(shown.Data.Forks[0].Running[0], syscall.SIGKILL)
	p.reaches(a.Data.ID, "unknown_outcome")
	p.nothing()
	if d := p.fork(0, "fork", "diff", "work-1"); len(d.Data.Files) == 0 {
		t.Errorf("%+v", d)
	}
}

// TestTheNetworkOfAFork lets agents say what network they have: one of their own with a proxy, or what the call says,
// also when they go on after an answer.
func TestTheNetworkOfAFork(t *testing.T) {
	t.Parallel()
	const script = `cat >/dev/null; (grep -c : /proc/net/dev; echo "$http_proxy") >net.txt; echo 1 >>more.txt; echo ok`
	machine, err := net.Interfaces()
	if err != nil || len(machine) < 2 {
		t.Skip("this machine has nothing but a loopback, which tells no network from another")
	}
	p := newPlace(t).agent("looks", script).agent("looks-too", script)
	got := func(fork string) (own, proxy bool) {
		t.Helper()
		out, err := p.command("fork", "run", "--name", fork, "--", "cat", "net.txt").Output()
		if err != nil {
			t.Fatalf("%s: %v", fork, err)
		}
		lines := strings.Split(string(out), "\n")
		return lines[0] == "1", strings.HasPrefix(lines[1], "http://127.0.0.1:")
	}
	is := func(fork string, wantOwn, wantProxy bool) {
		t.Helper()
		if own, proxy := got(fork); own != wantOwn || proxy != wantProxy {
			t.Errorf("%s has a loopback of its own: %v, a proxy: %v", fork, own, proxy)
		}
	}
	p.run("looks", "--yolo", "--fork").is(t, 0, "succeeded", "done")
	is("work-1", true, true)
	p.run("looks", "--yolo", "--fork", "--network", "on").is(t, 0, "succeeded", "done")
	is("work-2", false, false)
	asked := p.run("looks", "--yolo", "--fork", "--network", "off", "--require", "a=What?")
	asked.is(t, 4, "needs_input", asked.Data.Reason)
	p.call("answer", asked.Data.ID, "this").is(t, 0, "succeeded", "done")
	is("work-3", true, false)
	p.call("runs", "retry", asked.Data.ID).is(t, 0, "succeeded", "done")
	is("work-3", true, false)
	c := p.contest(0, "--race", "looks,looks-too", "--network", "off", "-p", "Look.")
	is(c.Runs[0].Fork, true, false)
	p.call("runs", "retry", c.Runs[0].ID).is(t, 0, "succeeded", "done")
	is(c.Runs[0].Fork, true, false)
	p.fork(2, "run", "--agent", "looks", "-p", "x", "--network", "off")
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := net.LookupIP(name); err != nil || !found[0].IsPrivate() && !found[0].IsLoopback() {
		t.Logf("not tried: a model in a private network, because %s has no address there: %v %v", name, found, err)
	} else {
		p.env = append(p.env, "OPENAI_BASE_URL=http://"+name+":1/v1")
		a := p.run("looks", "--yolo", "--fork")
		a.is(t, 0, "succeeded", "done")
		is("work-6", false, false)
		if !strings.Contains(a.Stderr, "the model at "+name+":1 is in a private one") {
			t.Errorf("%s", a.Stderr)
		}
	}
	p.nothing()
}

// TestConversationsInForks talks to the native agent in forks: its model is on this machine, and reached from a
// loopback of the fork's own, whatever its commands reach.
func TestConversationsInForks(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"calls":[{"shell":"grep -c : /proc/net/dev >net.txt; echo looked"}]},{"say":"It is done."}]`)
	start := func(args ...string) {
		t.Helper()
		cmd := p.command(append([]string{
			"start", "--provider", "openai", "-m", "m", "--approval", "yolo", "--fork", "--sandbox", "off", "-p", "go",
			"--output-format", "text",
		}, args...)...)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), "It is done.") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	talk := p.command("chat", "--plain", "--provider", "openai", "-m", "m", "--approval", "yolo", "--fork", "--sandbox",
		"off", "--network", "off")
	talk.Stdin = strings.NewReader("go\n")
	start()
	start("--network", "off")
	start("--network", "on")
	if out, err := talk.Output(); err != nil || !strings.Contains(string(out), "It is done.") {
		t.Errorf("%v\n%s", err, out)
	}
	for fork, own := range map[string]bool{"work-1": true, "work-2": true, "work-3": false, "work-4": true} {
		out, err := p.command("fork", "run", "--name", fork, "--", "cat", "net.txt").Output()
		if err != nil || (string(out) == "1\n") != own {
			t.Errorf("%s: %q %v", fork, out, err)
		}
	}
	if _, err := os.Stat(filepath.Join(p.work, "net.txt")); err == nil {
		t.Error("it worked in the workspace")
	}
	p.nothing()
}
