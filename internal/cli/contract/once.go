package contract

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/sys/workspace"
)

// A call with an idempotency key is carried out once, and its result is stored. The same call with the same key returns
// that result and changes nothing. Only success is stored: a failed call may be repeated with its key. A call that
// begins a job, such as a run, stores the job's name before it does anything, and the same call returns what has become
// of the job, whatever that is.
//
//	no record ─▶ lock ─▶ run ─┬─ success ─▶ store the result ─▶ answer
//	                           ├─ failure ─▶ store nothing ────▶ answer
//	                           └─ Begun ───▶ store the job ────▶ answer
//	record ────▶ same arguments: the stored result, or that of the job; others: CONFLICT

type storedResult struct {
	Command string          `json:"command"`
	Hash    string          `json:"given"` // hash of the arguments
	At      time.Time       `json:"at"`
	Job     string          `json:"job,omitempty"` // the name of a job, in place of the data
	Data    json.RawMessage `json:"data,omitempty"`
}

// keyed is what belongs to the idempotency key of a call that is being carried out.
type keyed struct {
	file, hash string
	job        string // see Begun
}

// Begun stores the name of the job that the call begins. From then on the same call with the same idempotency key
// begins nothing and returns the state of the job: see Command.Again.
func (c *Call) Begun(job string) error {
	if c.keyed == nil || c.keyed.job != "" || c.Command.Again == nil {
		return nil
	}
	c.keyed.job = job
	return c.storeResult(storedResult{Job: job})
}

// storeResult stores the result of a call, or its job, under its idempotency key.
func (c *Call) storeResult(r storedResult) error {
	r.Command, r.Hash, r.At = c.Command.Path, c.keyed.hash, time.Now().UTC()
	record, _ := json.Marshal(r)
	return workspace.WriteFile(c.keyed.file, record, 0o600)
}

// ResultLifetime is how long results are stored; cleanup removes older ones.
const ResultLifetime = 24 * time.Hour

// once calls run, unless an earlier call with the same idempotency key has a stored result or a job.
func (c *Call) once(ctx context.Context, signals <-chan os.Signal, run func() answer) answer {
	key := c.String("idempotency-key")
	if key == "" || c.DryRun() {
		return run()
	}
	if c.Paths.State == "" {
		return answer{fault: fault.New(fault.NoHome, "there is no place to remember the idempotency key").
			Hint("set HOME or XDG_STATE_HOME")}
	}
	file := filepath.Join(c.Paths.State, "idempotency", hash(key)+".json")
	if err := workspace.MkdirAll(filepath.Dir(file)); err != nil {
		return answer{fault: fault.Of(err)}
	}
	attended, stop := c.interruptible(ctx, signals)
	lock, err := workspace.Lock(attended, file+".lock", c.LockWait())
	if f := stop(); f != nil {
		if lock != nil {
			_ = lock.Unlock()
		}
		return answer{fault: f}
	}
	if err != nil {
		return answer{fault: fault.Of(err)}
	}
	var a answer
	defer func() {
		if !a.dead { // an abandoned handler may still be at work: no other call may begin
			_ = lock.Unlock()
		}
	}()
	arguments := hash(c.Command.Path + "\x00" + c.dir + "\x00" + c.query() +
		string(appendJSON(nil, (&walker{unmask: true}).tree(c.ownValues()))))
	again, job, found := c.repeat(file, arguments)
	switch {
	case job != "":
		c.earlier = job
		a = run()
		a.effect, a.meta = Noop, a.meta.set("idempotency_hit", true)
		return a
	case found:
		return again
	}
	c.keyed = &keyed{file: file, hash: arguments}
	if a = run(); a.done && c.keyed.job == "" {
		if err := c.storeResult(storedResult{Data: appendJSON(nil, a.data)}); err != nil {
			c.Warn("IDEMPOTENCY_NOT_RECORDED",
				"the result could not be kept: %v; the key does not protect a second call", err)
		}
	}
	return a
}

// ownValues returns the values of the command's own parameters. They identify the call; shared flags do not.
func (c *Call) ownValues() map[string][]string {
	values := map[string][]string{}
	for _, p := range c.Command.Params {
		if v, ok := c.values[p.Name]; ok {
			values[p.Name] = v
		}
	}
	return values
}

// repeat answers from the stored result, or names the job that was begun, if there is one.
func (c *Call) repeat(file, arguments string) (a answer, job string, found bool) {
	raw, err := workspace.ReadFile(file, 16<<20)
	if errors.Is(err, fault.FileMissing) {
		return answer{}, "", false
	}
	var k storedResult
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if err != nil {
		c.Warn("IDEMPOTENCY_RECORD_UNREADABLE", "%s cannot be read and is replaced", file)
		return answer{}, "", false
	}
	if time.Since(k.At) > ResultLifetime {
		return answer{}, "", false
	}
	if k.Hash != arguments {
		return answer{fault: fault.New(fault.IdempotencyKeyReused,
			"the idempotency key was used at %s for another call (%s)", k.At.Format(time.RFC3339), k.Command).
			Hint("use a new key for a new call")}, "", true
	}
	if k.Job != "" {
		return answer{}, k.Job, true
	}
	v, err := literal.ParseJSON5(k.Data)
	if err != nil {
		return answer{}, "", false
	}
	// The first answer may have been unmasked; that does not permit showing it unmasked now.
	data := (&walker{unmask: c.Bool("unmask")}).tree(literalTree(v))
	return answer{data: data, effect: Noop, meta: object{{"idempotency_hit", true}}}, "", true
}

// literalTree turns parsed JSON into a tree.
func literalTree(v literal.Value) any {
	switch v.Kind {
	case literal.Object:
		o := object{}
		for _, m := range v.Members {
			o = append(o, member{m.Key, literalTree(m.Value)})
		}
		return o
	case literal.Array:
		list := []any{}
		for _, item := range v.Items {
			list = append(list, literalTree(item))
		}
		return list
	case literal.Number:
		return json.Number(v.Num)
	case literal.Bool:
		return v.Bool
	case literal.Null:
		return nil
	}
	return v.Str
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
