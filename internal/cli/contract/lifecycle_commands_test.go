package contract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// misbehavingLifecycle returns commands that end in every way, print where they should not, and hold what they should
// give back.
func misbehavingLifecycle() []*Command {
	return slices.Concat(endingCommands(), failingCommands(), printingCommands(), steppedCommands(), doorCommands())
}

// note adds a line to a file of the call's directory, for the test to read.
func note(c *Call, file, line string) {
	f, err := os.OpenFile(filepath.Join(c.Dir(), file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, _ = f.WriteString(line + "\n")
	_ = f.Close()
}

// until waits for the test to make a file, or for the call to end.
func until(ctx context.Context, c *Call, file string) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(c.Dir(), file)); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func choice(name string, values ...string) Param {
	return Param{Name: name, Kind: Enum, Enum: values, Help: "what it does", Position: 1, Required: true}
}

func endingCommands() []*Command {
	return []*Command{
		quick(Command{
			Path: "ends", Params: []Param{choice("how", "return", "error", "panic", "goexit", "hang", "polite")},
			Run:   runEnds,
			Exits: []Exit{{Code: Success, When: "it returns"}, {Code: NotFound, When: "it fails"}},
		}),
		quick(Command{
			Path: "stuck", Params: []Param{choice("how", "read", "spin", "all")}, Run: runStuck, Danger: Safe,
		}),
		quick(Command{
			Path: "stuck-change", Danger: Mutating, Run: func(context.Context, *Call) (Result, error) { select {} },
		}),
		quick(Command{Path: "hooks", Params: []Param{choice("how", "hang", "panic", "slow")}, Run: runHooks}),
		quick(Command{
			Path: "stubborn", Children: []Subprocess{{Binary: "sh"}},
			Run: func(ctx context.Context, c *Call) (Result, error) {
				ready(c)
				<-ctx.Done()
				note(c, "told", "")
				select {}
			},
		}),
		quick(Command{
			Path: "parent", Children: []Subprocess{{Binary: "sh"}},
			Run: func(ctx context.Context, c *Call) (Result, error) {
				_, err := c.Spawn(ctx, "sh", "-c",
					`trap "" TERM; cd "$1"; echo $$ >pid; : >ready; while :; do sleep 0.05; done`, "sh", c.Dir())
				return Result{Data: anyData{"half"}}, err
			},
		}),
		quick(Command{
			Path: "change", Danger: Mutating, Params: []Param{{
				Name: "how", Kind: Enum, Enum: []string{"well", "silently", "badly"}, Default: "well", Help: "how",
			}},
			Exits: []Exit{{Code: Success, When: "done"}, {Code: Conflict, When: "it is there"}},
			Run: func(_ context.Context, c *Call) (Result, error) {
				switch c.String("how") {
				case "silently":
					return Result{Data: anyData{"changed"}}, nil
				case "badly":
					return Result{}, fault.New(fault.AlreadyExists, "x exists")
				}
				return Result{Data: anyData{"changed"}, Effect: Updated}, nil
			},
		}),
		quick(Command{Path: "quietly", Quiet: true}),
		quick(Command{Path: "panic-early", Validate: func(*Call) []fault.Problem { panic("too early") }}),
		quick(Command{
			Path:   "ids",
			Params: []Param{{Name: "id", Kind: ID, Position: 1, Variadic: true, Stdin: true, Help: "ids"}},
		}),
	}
}

// runEnds takes everything that must be given back, and ends as it is told.
func runEnds(ctx context.Context, c *Call) (Result, error) {
	for _, name := range []string{"first", "second", "third"} {
		c.OnCleanup(func() { note(c, "hooks", name) })
	}
	dir, err := c.Temp()
	if err != nil {
		return Result{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600); err != nil {
		return Result{}, err
	}
	if _, err := workspace.Lock(ctx, filepath.Join(c.Dir(), "lock"), 0); err != nil {
		return Result{}, err
	}
	ready(c)
	switch c.String("how") {
	case "error":
		return Result{}, fault.New(fault.FileMissing, "the file x does not exist")
	case "panic":
		panic("on purpose")
	case "goexit":
		runtime.Goexit()
	case "hang":
		select {}
	case "polite":
		<-ctx.Done()
		return Result{Data: anyData{"half"}}, context.Cause(ctx)
	}
	return Result{Data: anyData{dir}}, nil
}

// runStuck does not come back, and does not look whether it should.
func runStuck(ctx context.Context, c *Call) (Result, error) {
	switch c.String("how") {
	case "read":
		r, _, err := os.Pipe()
		if err == nil {
			_, err = r.Read(make([]byte, 1))
		}
		return Result{}, err
	case "spin":
		for n := 0; ; n++ {
			if n < 0 {
				n = 0
			}
		}
	}
	for { // whatever a call offers, long after the answer
		c.Warn("LATE", "late")
		c.Progress("late")
		c.OnCleanup(func() {})
		_, _ = c.Temp()
		_ = c.Step(ctx, "none", nil)
		runtime.Gosched()
	}
}

func runHooks(_ context.Context, c *Call) (Result, error) {
	c.OnCleanup(func() { note(c, "hooks", "before") })
	c.OnCleanup(func() {
		switch c.String("how") {
		case "hang":
			select {}
		case "panic":
			panic("in a hook")
		case "slow":
			note(c, "cleaning", "")
			until(context.Background(), c, "go")
		}
	})
	if c.String("how") == "slow" {
		ready(c)
		select {}
	}
	return Result{Data: anyData{"done"}}, nil
}

func failingCommands() []*Command {
	every := []Exit{}
	for _, s := range standards() {
		every = append(every, Exit{Code: s.code, When: "asked to"})
	}
	return []*Command{
		quick(Command{Path: "code", Exits: every, Run: runCode, Params: []Param{
			{Name: "code", Kind: ID, Position: 1, Required: true, Help: "code of the fault"},
			{Name: "after-ms", Kind: Int, Help: "wait that the fault knows"},
			{Name: "final", Kind: Bool, Help: "it is of no use to try again"},
		}}),
		quick(Command{
			Path: "goes-wrong", Params: []Param{choice("how", "plain", "wrapped", "with-data")}, Run: runGoesWrong,
			Exits: []Exit{
				{Code: Success, When: "never"},
				{Code: NotFound, When: "wrapped"},
				{Code: Conflict, When: "with data"},
			},
		}),
		quick(Command{
			Path: "exits", Params: []Param{{Name: "code", Kind: ID, Position: 1, Required: true, Help: "code"}},
			Exits: []Exit{{Code: Success, When: "done"}, Specific(80, "OWN_CODE", "its own reason")},
			Run: func(_ context.Context, c *Call) (Result, error) {
				return Result{Data: anyData{"done"}, Exit: Code(c.String("code"))}, nil
			},
		}),
		quick(Command{
			Path: "batch", Batch: true, Output: TypeOf[batchData](), Params: []Param{{
				Name: "broken", Kind: Int, Max: 3, Help: "how many fail",
			}}, Run: runBatch,
			Exits: []Exit{{Code: Success, When: "all is done"}, {Code: PartialFailure, When: "an item failed"}},
		}),
	}
}

func runCode(_ context.Context, c *Call) (Result, error) {
	f := fault.New(fault.Code(c.String("code")), "something is wrong with x")
	if c.Given("after-ms") {
		f.After(time.Duration(c.Int("after-ms")) * time.Millisecond)
	}
	if c.Bool("final") {
		no := false
		f.Retry = &no
	}
	return Result{}, f
}

func runGoesWrong(_ context.Context, c *Call) (Result, error) {
	switch c.String("how") {
	case "plain":
		return Result{}, errors.New("a plain error")
	case "wrapped":
		return Result{}, fmt.Errorf("while reading: %w", fault.New(fault.FileMissing, "the file x does not exist"))
	}
	return Result{Data: anyData{"the one there is"}}, fault.New(fault.AlreadyExists,
		"x exists already").With("conflict_id", "x")
}

type batchData struct {
	Summary struct {
		Total     int `json:"total"`
		Succeeded int `json:"succeeded"`
		Failed    int `json:"failed"`
	} `json:"summary"`
	Results []batchResult `json:"results"`
}

type batchResult struct {
	ID    string      `json:"id"`
	OK    bool        `json:"ok"`
	Error *batchError `json:"error"`
}

type batchError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

func runBatch(_ context.Context, c *Call) (Result, error) {
	var data batchData
	for i, id := range []string{"a", "b", "c"} {
		r := batchResult{ID: id, OK: i >= c.Int("broken")}
		if !r.OK {
			data.Summary.Failed++
			r.Error = &batchError{"FILE_NOT_FOUND", id + " does not exist", false}
		}
		data.Results = append(data.Results, r)
	}
	data.Summary.Total, data.Summary.Succeeded = 3, 3-data.Summary.Failed
	return Result{Data: data, Failed: data.Summary.Failed}, nil
}

func printingCommands() []*Command {
	rows := Command{
		Path: "rows", Class: Listing, List: &List{Key: "items", ID: "name", Order: "given"},
		Output: TypeOf[itemData](), Run: runRows,
		Params: []Param{
			{Name: "count", Kind: Int, Default: "3", Position: 1, Help: "rows"},
			{Name: "wait", Kind: Enum, Enum: []string{"go", "never"}, Help: "what comes before the second row"},
		},
	}
	return []*Command{
		quick(rows),
		quick(Command{
			Path: "stray", Params: []Param{choice("how", "print", "descriptor", "json", "forever")}, Run: runStray,
		}),
		quick(Command{Path: "long", LongRunning: true, Run: func(ctx context.Context, c *Call) (Result, error) {
			ctx, stop := context.WithTimeout(ctx, 25*time.Second)
			defer stop()
			until(ctx, c, "go")
			return Result{Data: anyData{"done"}}, nil
		}}),
		quick(Command{Path: "talks", Run: func(_ context.Context, c *Call) (Result, error) {
			c.Log("an error\nof two lines")
			c.Log("a warning")
			c.Progress("progress")
			c.Debug("a detail\x1b[31m")
			return Result{Data: anyData{"done"}}, nil
		}}),
		quick(Command{Path: "warns", Run: func(_ context.Context, c *Call) (Result, error) {
			c.Warn("ODD", "something is odd")
			return Result{Data: anyData{"done"}}, nil
		}}),
	}
}

func runRows(ctx context.Context, c *Call) (Result, error) {
	return Result{Data: itemData{Rows[item]{Seq: func(yield func(item) bool) {
		for i := range c.Int("count") {
			switch {
			case i == 1 && c.String("wait") == "go":
				until(ctx, c, "go")
			case i == 1 && c.String("wait") == "never": // a row while the answer is being made
				over, tried := make(chan bool), make(chan bool)
				c.OnCleanup(func() { close(over); <-tried })
				<-over
				yield(item{"late", 0})
				close(tried)
				return
			}
			if !yield(item{fmt.Sprintf("row-%d", i), i}) {
				return
			}
		}
	}}}}, nil
}

func runStray(_ context.Context, c *Call) (Result, error) {
	switch c.String("how") {
	case "print":
		fmt.Println("stray words")
	case "descriptor":
		_, _ = syscall.Write(syscall.Stdout, []byte("stray bytes\n"))
	case "json":
		fmt.Println(`{"ok":true,"data":"stray"}`)
	case "forever":
		for {
			fmt.Println("stray for ever")
		}
	}
	return Result{Data: anyData{"done"}}, nil
}
