package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/testkit/hermetic"
)

// writeForEver resumes the session, or begins it, and writes turns to it. It prints the number of each record when
// Append has returned. The records say what they must be: a message has its own number in it.
func writeForEver(dir string) error {
	s := Open(dir)
	own, err := s.Resume(context.Background(), "kill")
	if errors.Is(err, fault.NotFoundCode) {
		own, err = s.Create(context.Background(), Begin{ID: "kill", Provider: "gemini", Model: "m1", Cwd: "/w"})
	}
	if err != nil {
		return err
	}
	fmt.Println(own.State().Head)
	for {
		next := own.State().Head + 1
		var r Record = killed(next)
		switch {
		case next%20 == 0:
			r = Compacted{Summary: user("before").Message}
		case next%20 == 10:
			r = end()
		}
		if _, err := own.Append(r); err != nil {
			return err
		}
		fmt.Println(next)
	}
}

// killed is the message that stands in a record. Some are large, so that a kill finds the process at writing them.
func killed(number int64) Message {
	m := user(itoa(number) + " " + strings.Repeat("x", int(number*7919%100_000)))
	m.Answer = itoa(number)
	return m
}

// TestKillsLoseAtMostTheLastRecord ends a writer with kill -9 at random moments, OMNIAGENT_KILLS of them. What Append
// had returned for is there, and the session goes on.
func TestKillsLoseAtMostTheLastRecord(t *testing.T) {
	hermetic.Long(t)
	kills := hermetic.Often(t, "OMNIAGENT_KILLS", 24)
	const workers = 4
	var group sync.WaitGroup
	torn := make([]int, workers)
	for w := range workers {
		s := store(t)
		group.Go(func() {
			for range kills / workers {
				if t.Failed() {
					return
				}
				torn[w] += killOnce(t, s)
			}
		})
	}
	group.Wait()
	t.Logf("%v of %d kills left a torn line", torn, kills)
}

func killOnce(t *testing.T, s Store) (torn int) {
	cmd, err := startWriter(s.dir)
	if err != nil {
		t.Error(err)
		return 0
	}
	lines := bufio.NewScanner(cmd.out)
	enough, acknowledged := rand.IntN(12), int64(0)
	for n := 0; lines.Scan(); n++ {
		acknowledged, _ = strconv.ParseInt(lines.Text(), 10, 64)
		if n >= enough {
			for range rand.IntN(200_000) { // somewhere in what it does next
			}
			break
		}
	}
	_ = cmd.Process.Kill()
	for lines.Scan() {
		acknowledged, _ = strconv.ParseInt(lines.Text(), 10, 64)
	}
	_ = cmd.Wait()
	if data, err := os.ReadFile(s.file("kill", journalEnding)); err == nil && len(data) > 0 &&
		data[len(data)-1] != '\n' {
		torn = 1
	}
	own, err := s.Resume(context.Background(), "kill")
	if err != nil {
		t.Errorf("after record %d: %v", acknowledged, err)
		return torn
	}
	defer own.Close()
	state := own.State()
	if state.Head < acknowledged || state.Head > acknowledged+1 || state.Damaged > 0 {
		t.Errorf("record %d was written, and %d is the last; %d are damaged", acknowledged, state.Head, state.Damaged)
	}
	for _, m := range own.Visible() {
		if want := killed(m.Number); m.Number%20 != 0 && m.Blocks[0].Text != want.Blocks[0].Text {
			t.Errorf("record %d is not what was written", m.Number)
		}
	}
	if n := int64(state.Messages); n != state.Head-1-state.Head/10 {
		t.Errorf("%d messages in %d records", n, state.Head)
	}
	return torn
}

// converse writes a conversation as hosts have it, for ever, and prints what is acknowledged: "seq turn end" of records
// that somebody may act upon.
func converse(dir string) error {
	s := Open(dir)
	own, err := s.Resume(context.Background(), "kill")
	if errors.Is(err, fault.NotFoundCode) {
		own, err = s.Create(context.Background(), Begin{ID: "kill", Agent: "claude", Model: "m1", Cwd: "/w"})
	}
	if err != nil {
		return err
	}
	for _, u := range own.State().Unfinished {
		if _, err := own.Append(ended(u.Turn)); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(os.Stdout)
	for turn := own.State().LastTurn + 1; ; turn++ {
		for n, r := range []Record{
			prompted("go on", turn),
			Logged{&event.Event{Kind: event.TurnBegan, Turn: turn}},
			told("a", turn), told(strings.Repeat("b", int(turn*7919%70_000)), turn),
			Logged{&event.Event{
				Kind: event.ToolResult, Turn: turn,
				Result: &event.Result{Output: strings.Repeat("c", int(turn*7919%400_000))},
			}},
			user("d"), ended(turn),
		} {
			number, err := own.Append(r)
			if err != nil {
				return err
			}
			if n == 0 {
				if err := own.Sync(); err != nil {
					return err
				}
			}
			fmt.Fprintf(out, "%d %d %d\n", number, turn, n)
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// TestKilledConversationsSayWhichTurnIsUnknown ends the process that has a conversation with kill -9 at random moments.
// What was acknowledged is there, in its order, and a turn without an end is named.
func TestKilledConversationsSayWhichTurnIsUnknown(t *testing.T) {
	hermetic.Long(t)
	kills := hermetic.Often(t, "OMNIAGENT_KILLS", 16)
	s := store(t)
	unknown, cuts := 0, 0
	for range kills {
		cmd, _, out := other(t, "converse", s.dir)
		lines, enough := bufio.NewScanner(out), rand.IntN(40)
		var number, turn, step int64
		for n := 0; lines.Scan(); n++ {
			_, _ = fmt.Sscan(lines.Text(), &number, &turn, &step)
			if n >= enough {
				for range rand.IntN(300_000) { // somewhere in what it does next
				}
				break
			}
		}
		_ = cmd.Process.Kill()
		for lines.Scan() {
			_, _ = fmt.Sscan(lines.Text(), &number, &turn, &step)
		}
		_ = cmd.Wait()
		own, err := s.Resume(t.Context(), "kill")
		check(t, err)
		state := own.State()
		if own.Last() < number || own.Last() > number+1 || state.Damaged != 0 || state.LastTurn < turn {
			t.Fatalf("record %d of turn %d was acknowledged; the last is %d, of turn %d, and %d are damaged", number,
				turn, own.Last(), state.LastTurn, state.Damaged)
		}
		cuts += len(state.Damage)
		open := step < 6 && own.Last() != number+(6-step) || own.Last() == number+1 && step == 6
		if open != (len(state.Unfinished) == 1) || open && state.Unfinished[0].Turn != state.LastTurn {
			t.Fatalf("step %d of turn %d was acknowledged, record %d of %d; unfinished: %+v", step, turn, number,
				own.Last(), state.Unfinished)
		}
		unknown += len(state.Unfinished)
		check(t, own.Close())
	}
	all := stored(t, s, "kill", 1)
	for n := range int64(strings.Count(all, "\n")) {
		if !strings.Contains(all, fmt.Sprintf("{\"seq\":%d,", n+1)) {
			t.Fatalf("record %d is not there", n+1)
		}
	}
	t.Logf("%d kills: %d left a turn whose outcome is unknown, %d a torn line", kills, unknown, cuts)
}

type writer struct {
	*exec.Cmd
	out io.Reader
}

func startWriter(dir string) (*writer, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, dir)
	cmd.Env = append(os.Environ(), roleVariable+"=write", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &writer{cmd, out}, cmd.Start()
}

func holdSession(dir string) error {
	if _, err := Open(dir).Resume(context.Background(), "held"); err != nil {
		return err
	}
	fmt.Println("held")
	_, err := io.ReadAll(os.Stdin)
	return err
}

func TestASessionHasOneWriter(t *testing.T) {
	s := store(t)
	check(t, create(t, s, "held").Close())
	cmd, in, out := other(t, "hold", s.dir)
	if line, err := out.ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, err := s.Resume(t.Context(), "held")
	f := wantCode(t, err, fault.Conflicting)
	if f.Detail["holder_pid"] != cmd.Process.Pid || !strings.Contains(f.Message, strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("%v %v does not name process %d", f.Message, f.Detail, cmd.Process.Pid)
	}
	wantCode(t, s.Delete(t.Context(), "held"), fault.Conflicting)
	v, err := s.Show("held") // readers are free
	check(t, err)
	v.Close()
	forked, err := s.Fork(t.Context(), "held", "")
	check(t, err)
	check(t, forked.Close())
	check(t, in.Close())
	check(t, cmd.Wait())
	own := resume(t, s, "held")
	if _, err := s.Resume(t.Context(), "held"); err == nil {
		t.Error("two writers in one process")
	}
	check(t, own.Close())
}

// TestADeadTurnGoesOn: the writer died between a call and its result.
func TestADeadTurnGoesOn(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("look"))
	add(t, own, assistant("yes", "c1", "c2"))
	add(t, own, result("c2", "two"))
	_ = own.abandon() // as the kernel does it
	own = resume(t, s, "x")
	want := "u look | a yes call:c1 call:c2 | u result:c1=INTERRUPTED result:c2=two"
	if got := said(own.Messages()); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	state := own.State()
	if state.Calls != 2 || state.Cost != 0.25 || state.Usage != (model.Usage{Input: 10, CacheRead: 5, Output: 3}) ||
		state.Turns != 0 {
		t.Errorf("what was spent is lost: %+v", state.Total)
	}
	add(t, own, user("go on"))
	if got := said(own.Messages()); got != want+" go on" {
		t.Errorf("got %s", got)
	}
	add(t, own, end())
	if state := own.State(); state.Cost != 0.5 || state.Turns != 1 {
		t.Errorf("%+v", state.Total)
	}
}
