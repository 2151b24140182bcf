//go:build unix

package agenttest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/talk/conversation"
)

// order tells a separate process what to do with a conversation that it holds directly.
type order struct {
	Agent, Home, Work, Temp, Bin, Mark string
	Env                                []string
	Mode                               setting.Approval
	Messages                           []string
	Stopped                            bool // a reader that stops; else what is told is printed
	Measure                            bool
}

// measured is the cost of reading a turn.
type measured struct {
	Took time.Duration
	Heap uint64 // what was in use when the turn had ended, and the reader had not gone on
}

const orderVariable = "OMNIAGENT_TEST_ORDER"

// hold is the main function of that process.
func hold() int {
	if err := holding(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func holding() error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		return err
	}
	_ = os.Unsetenv(orderVariable)
	p := &place{home: o.Home, work: o.Work, temp: o.Temp, bin: o.Bin, mark: o.Mark, env: o.Env}
	subject, err := named(o.Agent)
	if err != nil {
		return err
	}
	if p.model, err = modelserver.Start(scripted{}, modelserver.Options{Hurry: true}); err != nil {
		return err
	}
	defer func() { _ = p.model.Close() }()
	c, err := converse(context.Background(), subject, wish{mode: o.Mode, grace: 5 * time.Second, in: p}, quiet)
	if err != nil {
		return err
	}
	fmt.Println(c.ID())
	if o.Measure {
		return weigh(c, o)
	}
	for _, m := range o.Messages {
		if _, err := c.Send(context.Background(), []event.Block{{Text: m}}); err != nil {
			return err
		}
	}
	printed := bufio.NewWriter(os.Stdout)
	heard := c.Events(1)
	for {
		e, err := heard.Next(context.Background())
		if err != nil {
			return err
		}
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(printed, "%d %s\n", e.Seq, data)
		_ = printed.Flush()
	}
}

// named returns the subject of that name, driven directly.
func named(name string) (Subject, error) {
	for _, s := range []Subject{Engine(Direct()), Live(Direct()), PerTurn(Direct())} {
		if s.Agent == name {
			return s, nil
		}
	}
	return Subject{}, errors.New("there is no agent " + name)
}

// weigh reads one turn to its end, with or without a second reader that has stopped, and prints the cost.
func weigh(c *conversation.Conversation, o order) error {
	heard := c.Events(1)
	if _, err := c.Send(context.Background(), []event.Block{{Text: task("say first")}}); err != nil {
		return err
	}
	if o.Stopped {
		stopped := c.Events(1)
		defer stopped.Close()
		if _, err := stopped.Next(context.Background()); err != nil {
			return err
		}
	}
	if err := hear(heard); err != nil {
		return err
	}
	began := time.Now()
	if _, err := c.Send(context.Background(), []event.Block{{Text: o.Messages[0]}}); err != nil {
		return err
	}
	var m measured
	if err := hear(heard); err != nil {
		return err
	}
	m.Took = time.Since(began)
	m.Heap = inUse()
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	fmt.Println(string(data))
	_, err = c.Close(context.Background())
	return err
}

// hear reads to the end of a turn and keeps nothing.
func hear(from *conversation.Events) error {
	for {
		e, err := from.Next(context.Background())
		if err != nil || e.Kind == event.Ended {
			return err
		}
	}
}

// inUse returns the memory in use.
func inUse() uint64 {
	for range 3 { // what a finalizer frees is free after the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// held is such a process, and its output.
type held struct {
	cmd *exec.Cmd
	id  string
	out *bufio.Reader
}

// holdElsewhere starts such a process.
func (k *place) holdElsewhere(t *testing.T, o order) *held {
	t.Helper()
	o.Home, o.Work, o.Temp, o.Bin, o.Mark, o.Env = k.home, k.work, k.temp, k.bin, k.mark, k.env
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{cmd: exec.Command(filepath.Join(k.bin, holderName))}
	h.cmd.Env = append(append([]string{}, k.env...), orderVariable+"="+string(data))
	h.cmd.Dir, h.cmd.Stderr = k.work, os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	h.out = bufio.NewReaderSize(out, 1<<20)
	line, err := h.out.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	h.id = trimmed(line)
	return h
}
