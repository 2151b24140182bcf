//go:build unix

package evaluation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// How a call runs and ends: §10 to §20.

func controlModes() []mode {
	return []mode{
		{10, "Critical", "Interactivity", "", interactivity},
		{11, "Critical", "Timeouts", "", timeouts},
		{12, "Critical", "Idempotency", "", idempotency},
		{13, "Critical", "Partial failure", "", partialFailure},
		{14, "High", "Validation first", "", validationFirst},
		{15, "High", "Races", "", races},
		{16, "High", "Signals", "", signals},
		{17, "Medium", "Child leakage", "", childLeakage},
		{18, "High", "Error quality", "", errorQuality},
		{19, "High", "Retry hints", "", retryHints},
		{20, "Medium", "Dependencies", "", dependencies},
	}
}

// spies puts programs in the way of pagers and editors, which leave a mark when they are started.
func (p *probe) spies() (env []string, marked func() bool) {
	p.script("spy", `echo started >"`+p.root+`/spied"`)
	for _, name := range []string{"PAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "BROWSER"} {
		env = append(env, name+"="+p.tools+"/spy")
	}
	return env, func() bool { return p.exists("spied") }
}

// childEnvironment is what a child of a call is told: git, for doctor.
func (p *probe) childEnvironment(env []string) map[string]string {
	p.script("git", `export -p >"`+p.root+`/child-env"; echo "git version 2.45.0"`)
	p.do(call{args: []string{"doctor", "--quiet"}, env: env})
	all := map[string]string{}
	for line := range strings.Lines(p.read("child-env")) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "export "), "declare -x "))
		name, v, _ := strings.Cut(line, "=")
		all[name] = strings.Trim(v, `"'`)
	}
	return all
}

func interactivity(p *probe) {
	env, marked := p.spies()
	destructive := p.fastest(5*time.Second, call{args: []string{"cleanup"}, env: env})
	p.need(1, destructive.exit >= 0 && destructive.took < 5*time.Second && len(p.commands()) > 0,
		"the destructive command ends by itself without anything to read")
	ended := true
	for _, c := range append(p.safeCalls(), nil, []string{"config", "set"}, []string{"exec"}, []string{"trust"}) {
		r := p.do(call{args: c, env: env})
		ended = ended && r.exit >= 0
	}
	p.need(1, ended, "so does every other")
	p.need(2, p.do(call{args: []string{"exec"}, env: env}).failed(4, ""),
		"what cannot go on without input says so as JSON, status 4")
	p.need(3, ended && !marked() && destructive.envelope(),
		"without a flag: no prompt, and no pager, editor or browser of the environment is started")
	child := p.childEnvironment(env)
	p.need(3, child["PAGER"] == "cat" && child["EDITOR"] == "true" && child["VISUAL"] == "true",
		"children get PAGER=cat, EDITOR=true, VISUAL=true")
}

// hang makes the child of doctor hang, after it has started one of its own and said through a pipe that it is there.
func (p *probe) hang() (up *os.File, close func()) {
	path, f := p.fifo("up")
	p.script("git", `trap '' TERM; /bin/sleep 60 & echo $! >"`+p.root+`/grandchildren"; echo $$ >"`+path+`"; wait`)
	return f, func() { _ = f.Close() }
}

func timeouts(p *probe) {
	_, done := p.hang()
	defer done()
	r := p.do(call{args: []string{"doctor", "--timeout", "300ms"}, env: []string{"OMNIAGENT_GRACE=100ms"}})
	p.need(1, r.exit > 0 && r.took < 3*time.Second, "a child that hangs is given up within 3 s")
	p.need(2, r.failed(10, "TIMEOUT") && r.num("meta/duration_ms") >= 300 && r.num("meta/timeout_ms") == 300,
		"status 10, TIMEOUT, meta.duration_ms and timeout_ms")
	p.litter(1000)
	stepped := p.run("cleanup", "--timeout", "5ms", "--min-age", "0", "--live")
	p.need(3, stepped.failed(10, "TIMEOUT") && stepped.has("data/completed_steps") &&
		stepped.str("data/resume_from") != "", "a stepped command tells completed_steps and where to go on")
	p.note("resume_token is read as resume_from, the value of --resume-from")
	beat := p.do(call{args: []string{
		"doctor", "--timeout", "1500ms", "--heartbeat-interval", "1", "--heartbeat-ms",
		"0",
	}, env: []string{"OMNIAGENT_GRACE=100ms"}})
	p.need(3, strings.Contains(beat.err, "[1s]") && beat.failed(10, "TIMEOUT"), "--heartbeat-interval shows life")
}

func idempotency(p *probe) {
	args := []string{"config", "set", "grace", "3s", "--idempotency-key", "order-1"}
	first, again := p.run(args...), p.run(args...)
	p.need(1, first.succeeded() && again.exit == 0, "the same call twice is not an error")
	p.need(2, first.str("data/effect") == "created" && again.str("data/effect") == "noop", "the second has effect noop")
	p.run("config", "set", "grace", "9s")
	third := p.run(args...)
	now := p.run("config", "get", "grace")
	p.need(3, third.yes("meta/idempotency_hit") && now.str("data/value") == "9s",
		"a key repeats the first result and changes nothing")
	changing := 0
	p.need(3, every(p.enveloped(), func(_ string, e value) bool {
		if e.str("danger_level") == "safe" {
			return true
		}
		changing++
		return e.has("flags/idempotency-key") && e.has("flags/dry-run")
	}) && changing > 0, "every command with an envelope that changes something has --idempotency-key and --dry-run")
	begin := []string{
		"start", "--provider", "openai", "--model", "m", "--api-base", "http://127.0.0.1:1/v1",
		"--session-id", "once",
	}
	begun := p.run(begin...)
	_ = p.run(begin...)
	kept := p.run("session", "list")
	p.need(3, begun.exit == 0 && len(kept.list("data/sessions")) == 1, "a conversation is begun once under one name")
	effects := []*result{
		p.run("config", "unset", "grace"), p.run("trust", "--remove"), p.run("cleanup"),
		p.run("generate-skills", "cards"),
	}
	p.need(3, !slices.ContainsFunc(effects, func(r *result) bool { return r.str("data/effect") == "" }),
		"and says its effect")
}

func partialFailure(p *probe) {
	p.write("work/a/.omniagent/config.toml", "grace = \"3s\"\n")
	_ = os.MkdirAll(p.work+"/a/.git", 0o755)
	batch := p.run("trust", "a", "missing")
	p.need(1, batch.failed(3, "PARTIAL_FAILURE"), "a batch of which a part failed ends with 3")
	p.need(2, len(batch.list("data/results")) == 2 && batch.num("data/summary/failed") == 1,
		"each item has its own result")
	p.write("home/.cache/omniagent/a/b/c/d", "x")
	args := []string{"cleanup", "--min-age", "0", "--max-depth", "1", "--live", "--output", "jsonl"}
	stepped := p.run(args...)
	events := lines(stepped.out)
	first, last := value{}, value{}
	if len(events) > 0 {
		first, last = events[0], events[len(events)-1]
	}
	p.need(2, stepped.exit == 3 && slices.Equal(last.strings("data/completed_steps"), []string{"processes", "temp"}) &&
		last.str("data/failed_step") == "cache", "a failure at step 3 of 4 says what was completed and what failed")
	p.need(3, last.str("data/resume_from") == "cache" && p.run("cleanup", "--resume-from", "cache").succeeded(),
		"resume_from is a point to go on from")
	p.need(3, slices.Equal(first.strings("steps"), []string{"processes", "temp", "cache", "logs", "undo"}),
		"the steps are listed at the start")
	p.need(3, p.extensions()["cleanup"].yes("rollback_available") ||
		p.commands()["trust"].has("flags/rollback-on-failure"),
		"--rollback-on-failure: no command of today can undo its finished steps")
}

func validationFirst(p *probe) {
	p.write("home/.cache/omniagent/old", "x")
	r := p.run("cleanup", "--confirm-destructive", "--min-age", "0", "--scope", "everything", "--max-depth", "deep")
	p.need(1, r.exit == 2 && p.exists("home/.cache/omniagent/old"),
		"a wrong argument beside a confirmed deletion: status 2, nothing deleted")
	p.need(2, r.failed(2, "") && len(r.list("error/errors")) == 2 && r.str("error/phase") == "validation",
		"both problems are told at once")
	only := p.run("config", "set", "grace", "3s", "--validate-only")
	wrong := p.run("config", "set", "grace", "soon", "--validate-only")
	p.need(3, only.succeeded() && only.yes("meta/validation_only") && !p.exists("work/.omniagent") &&
		wrong.failed(2, ""), "--validate-only checks and does nothing")
	p.need(3, every(p.enveloped(), func(_ string, e value) bool { return e.has("flags/validate-only") }),
		"every command with an envelope has it")
	stream := p.run("start", "-p", "hi", "--no-such-flag", "--nor-this")
	p.need(3, stream.refusedInStream(2, "--no-such-flag") && strings.Contains(stream.err, "--nor-this") &&
		!p.exists("home/.yume"),
		"one with a protocol of its own tells wrong flags, all at once, before it does anything")
}

func races(p *probe) {
	answers := make([]*result, 8)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			answers[i] = p.do(call{
				args: []string{"config", "set", "grace", fmt.Sprintf("%ds", i+1)}, secret: true, limit: 8 * time.Second,
			})
		})
	}
	wait.Wait()
	typed := !slices.ContainsFunc(answers, func(r *result) bool {
		return !r.succeeded() &&
			!r.failed(6, "CONCURRENT_MODIFICATION")
	})
	p.need(1, typed, "8 changes at once: each succeeds or gets a typed conflict")
	after := p.run("config", "get", "grace")
	p.need(1, after.succeeded() && strings.HasSuffix(after.str("data/value"), "s"), "the file is whole afterwards")
	release := p.holdLocks()
	held := p.do(call{args: []string{"config", "set", "grace", "9s"}, env: []string{"OMNIAGENT_LOCK_TIMEOUT=50ms"}})
	release()
	p.need(2, held.exit == 6 && held.took < 2*time.Second && held.num("error/retry_after_ms") > 0 &&
		held.yes("error/retryable"), "a held lock: a typed error with retry_after_ms, soon")
	temp := p.run("doctor", "--session-id", "mine")
	p.need(3, strings.HasPrefix(filepath.Base(temp.str("meta/session_tmp_dir")), "omniagent-mine-") &&
		!p.exists("tmp/"+filepath.Base(temp.str("meta/session_tmp_dir"))),
		"--session-id names the temporary directory, which is gone afterwards")
	strays := slices.DeleteFunc(p.files(), func(f string) bool { return !strings.Contains(filepath.Base(f), "tmp") })
	p.need(3, typed && len(strays) == 0, "writes are atomic: no temporary file is left")
}

// holdLocks takes every lock that the subject has made so far, as another process of it would.
func (p *probe) holdLocks() (release func()) {
	var held []*os.File
	for _, name := range p.files() {
		if !strings.Contains(name, "lock") {
			continue
		}
		if f, err := os.OpenFile(filepath.Join(p.root, name), os.O_RDWR, 0); err == nil {
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			held = append(held, f)
		}
	}
	return func() {
		for _, f := range held {
			_ = f.Close()
		}
	}
}

func signals(p *probe) {
	up, done := p.hang()
	defer done()
	var asked time.Time
	r := p.do(call{args: []string{"doctor"}, env: []string{"OMNIAGENT_GRACE=100ms"}, during: func(cmd *exec.Cmd) {
		if waitFor(up) != "" {
			asked = time.Now()
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}})
	p.need(1, r.exit > 0 && !asked.IsZero() && time.Since(asked) < 3*time.Second, "SIGTERM ends a call that hangs")
	p.need(2, r.failed(143, "CANCELLED") && r.yes("meta/partial"), "one JSON answer, CANCELLED, status 143")
	p.litter(3000)
	reader, writer, _ := os.Pipe()
	seen := make(chan string, 1)
	stepped := p.do(call{
		args: []string{"cleanup", "--min-age", "0", "--live", "--output", "jsonl"}, stdout: writer,
		during: func(cmd *exec.Cmd) {
			_ = writer.Close()
			seen <- readUntil(reader, `"step":"cache"`, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		},
	})
	answers := lines(<-seen)
	last := value{}
	if len(answers) > 0 {
		last = answers[len(answers)-1]
	}
	p.need(3, stepped.exit == 143 && slices.Equal(last.strings("data/completed_steps"),
		[]string{"processes", "temp"}) &&
		last.str("data/resume_from") == "cache", "in the middle of a step: completed_steps and resume_from")
	p.need(3, p.run("cleanup", "--resume-from", "cache").succeeded() &&
		p.run("config", "set", "grace", "3s").succeeded(), "no lock is left")
	p.need(3,
		every(p.extensions(), func(_ string, x value) bool {
			return x.yes("cancellable") &&
				x.str("cancel_signal") == "SIGTERM"
		}), "the schema says that every command is cancellable, and how")
}

// readUntil reads a pipe to its end, and calls then when mark has come by.
func readUntil(r *os.File, mark string, then func()) string {
	defer func() { _ = r.Close() }()
	_ = r.SetReadDeadline(time.Now().Add(3 * time.Second))
	var text strings.Builder
	b, told := make([]byte, 4096), false
	for {
		n, err := r.Read(b)
		text.Write(b[:n])
		if !told && strings.Contains(text.String(), mark) {
			told = true
			then()
		}
		if err != nil {
			return text.String()
		}
	}
}

func childLeakage(p *probe) {
	up, done := p.hang()
	defer done()
	child := ""
	r := p.do(call{args: []string{"doctor"}, env: []string{"OMNIAGENT_GRACE=100ms"}, during: func(cmd *exec.Cmd) {
		if child = strings.TrimSpace(waitFor(up)); child != "" {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}})
	p.need(1, child != "" && r.exit > 0 && gone(child),
		"the child of a call that was ended is gone, though it ignores SIGTERM")
	grand := strings.Fields(p.read("grandchildren"))
	p.need(2, len(grand) > 0 && gone(grand...), "so is what the child had started")
	p.need(3, strings.Contains(r.str("meta/session_pid_file"), p.home),
		"meta.session_pid_file names the record of children")
	p.need(3, every(p.extensions(), func(_ string, x value) bool { return x.has("spawns_background_process") }),
		"every command declares spawns_background_process")
	up, done = p.hang()
	defer done()
	p.do(call{args: []string{"doctor"}, during: func(cmd *exec.Cmd) {
		waitFor(up)
		p.recorded()
		_ = cmd.Process.Signal(syscall.SIGSTOP) // it would replace its guard
		killGuards(cmd.Process.Pid)
		_ = cmd.Process.Kill()
	}})
	grand = strings.Fields(p.read("grandchildren"))
	orphaned := len(grand) > 0 && alive(grand[0])
	r = p.run("cleanup", "--scope", "processes", "--live")
	p.need(3, orphaned && r.succeeded() && len(r.list("data/ended")) == 1 && gone(grand...),
		"cleanup ends what outlived a parent that was killed, with all that guards it")
}

// gone reports whether no process runs any more. One that is killed takes a moment to end, which nobody but its parent
// can wait for.
func gone(pids ...string) bool {
	look, late := time.NewTicker(5*time.Millisecond), time.After(time.Second)
	defer look.Stop()
	for slices.ContainsFunc(pids, alive) {
		select {
		case <-look.C:
		case <-late:
			return false
		}
	}
	return true
}

// alive reports whether a process runs. One that has ended and was not collected by its parent does not.
func alive(pid string) bool {
	n := 0
	_, _ = fmt.Sscan(pid, &n)
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)); err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(state, "Z")
	}
	return n > 0 && syscall.Kill(n, 0) == nil
}

// recorded waits until a call has recorded its child, which it can only do once the child runs.
func (p *probe) recorded() {
	look, late := time.NewTicker(time.Millisecond), time.After(3*time.Second)
	defer look.Stop()
	for {
		files, _ := filepath.Glob(p.home + "/.local/state/omniagent/sessions/*.jsonl")
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Size() > 0 {
				return
			}
		}
		select {
		case <-look.C:
		case <-late:
			return
		}
	}
}

// killGuards kills the processes that end the children of a process when it dies.
func killGuards(parent int) {
	all, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	for line := range strings.Lines(string(all)) {
		pid, ppid := 0, 0
		if _, err := fmt.Sscan(line, &pid, &ppid); err == nil && ppid == parent &&
			strings.Contains(line, "omniagent-guard") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func errorQuality(p *probe) {
	r := p.run("config", "set", "audit.kep", "3")
	p.need(1, r.exit > 0 && r.no("ok") && r.str("error/code") != "" && r.str("error/message") != "", "code and message")
	p.need(2, strings.Contains(r.str("error/suggestion"), "audit.keep") && !strings.Contains(r.out+r.err, "goroutine "),
		"a suggestion with what was probably meant, no stack trace")
	all := p.run("errors", "list", "--limit", "0", "--output", "json")
	page := documentation("docs/errors.md")
	documented, listed := true, false
	for _, e := range all.list("data/errors") {
		file, anchor, _ := strings.Cut(e.str("docs_url"), "#")
		documented = documented && file == "docs/errors.md" && strings.Contains(page, "\n## "+anchor+"\n")
		listed = listed || e.str("code") == r.str("error/code")
	}
	p.need(3, all.succeeded() && listed, "errors list has every code, this one too")
	p.need(3, r.str("error/docs_url") != "" && listed && documented,
		"each code has a docs_url that leads to its section")
}

// documentation is a page of the repository that the subject was built from.
func documentation(name string) string {
	b, _ := os.ReadFile(filepath.Join(repository, name))
	return string(b)
}

func retryHints(p *probe) {
	wrong := p.run("config", "get", "nothing")
	p.need(1, wrong.exit > 0 && wrong.no("error/retryable"), "a wrong argument is not retryable")
	p.need(2, wrong.str("error/fix_required") != "", "but says what to correct")
	p.run("config", "set", "grace", "3s")
	release := p.holdLocks()
	held := p.do(call{args: []string{"config", "set", "grace", "9s"}, env: []string{"OMNIAGENT_LOCK_TIMEOUT=20ms"}})
	release()
	p.need(2, held.yes("error/retryable") && held.num("error/retry_after_ms") > 0,
		"a held lock is, after retry_after_ms")
	p.need(3, held.str("error/retry_strategy") != "" && held.num("error/max_retries") > 0,
		"with retry_strategy and max_retries")
	p.need(3, held.num("meta/attempt") == 1 && held.num("meta/max_attempts") == 1, "and meta.attempt of max_attempts")
	all := p.run("errors", "list", "--limit", "0")
	p.need(3, len(all.list("data/errors")) > 0 && !slices.ContainsFunc(all.list("data/errors"),
		func(v value) bool { return !v.has("retryable") }), "every code has its default")
}

func dependencies(p *probe) {
	hidden := p.run("doctor")
	check, found := named(hidden.list("data/checks"), "git")
	p.need(1, hidden.there && found && check.no("ok"), "doctor notices that git is not there")
	p.need(2, check.str("fix") != "" && check.has("required") && check.has("version"),
		"with version, required and a command that fixes it")
	dependency, _ := named(hidden.list("data/dependencies"), "git")
	p.need(2, dependency.str("min_version") != "" && dependency.str("check_command") != "", "and the least version")
	p.script("git", `echo "git version 1.7.0"`)
	old, _ := named(p.run("doctor").list("data/checks"), "git")
	p.need(3, old.no("ok") && old.str("version") == "1.7.0", "one that is too old fails too")
	requirements := p.run("doctor", "--show-requirements", "--output", "json")
	p.need(3, requirements.succeeded() && requirements.has("data/required_tools/git"),
		"--show-requirements lists what a command needs")
	p.need(3, every(p.enveloped(), func(_ string, e value) bool { return e.has("flags/show-requirements") }),
		"every command with an envelope has it")
	p.need(3,
		every(p.extensions(), func(_ string, x value) bool { return x.has("requires") && x.has("required_tools") }),
		"and the schema of every command tells the same")
}

// named finds the object of that name in a list.
func named(list []value, name string) (value, bool) {
	for _, v := range list {
		if v.str("name") == name {
			return v, true
		}
	}
	return value{}, false
}
