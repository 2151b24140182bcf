package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/talk/conversation"
)

// ownerCall is a request of another process to an owner: a line of JSON. The response is an ownerReply.
type ownerCall struct {
	Do    string       `json:"do"` // answer, cancel
	Reply *event.Reply `json:"reply,omitempty"`
	By    int          `json:"by,omitempty"`   // the answering process
	Hide  string       `json:"hide,omitempty"` // the secret in the reply
}

type ownerReply struct {
	Fault *fault.Fault `json:"fault,omitempty"`
}

const (
	maxCall   = 4 << 20
	deskClock = 10 * time.Second // time limit of one call
)

// desk lets other processes reach the owner of a run, through a socket in the directory of the run, which only the user
// may enter.
type desk struct {
	run    *Run
	socket net.Listener
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	talk *conversation.Conversation // nil between two attempts
	by   map[string]int             // who answered, by question
}

// errCancelled returns the fault of a cancelled run.
func errCancelled() *fault.Fault {
	return fault.New(fault.Interrupted, "somebody cancelled the run").With("cancelled_by", "omniagent runs cancel")
}

// listen opens the socket and serves requests. It fails if the socket cannot be made.
func listen(r *Run, cancel context.CancelCauseFunc) (*desk, error) {
	path, err := socketPath(r.Path())
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "there is no room for a socket").Because(err)
	}
	_ = os.Remove(path)
	socket, err := net.Listen("unix", path)
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be opened", path).Because(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = socket.Close()
		return nil, fault.New(fault.PermissionDenied, "cannot restrict %s to its owner", path).Because(err)
	}
	d := &desk{run: r, socket: socket, cancel: cancel, by: map[string]int{}}
	r.Socket = path
	go d.serve()
	return d, nil
}

const maxSocketPath = 100 // bytes, for every system

// socketPath returns the path of a socket in dir. If that is too long for a socket, it makes a directory that only the
// user may enter, in the directory for temporary files, or in /tmp if that path is too long too.
func socketPath(dir string) (string, error) {
	if path := filepath.Join(dir, "socket"); len(path) <= maxSocketPath {
		return path, nil
	}
	const pattern = "omniagent-run-"
	temp := os.TempDir()
	if len(filepath.Join(temp, pattern+"0123456789", "socket")) > maxSocketPath {
		temp = "/tmp"
	}
	made, err := os.MkdirTemp(temp, pattern)
	return filepath.Join(made, "socket"), err
}

func (d *desk) close() {
	_ = d.socket.Close()
	if dir := filepath.Dir(d.socket.Addr().String()); dir != d.run.Path() {
		_ = os.RemoveAll(dir)
	}
}

// join makes a conversation reachable, and leave undoes that.
func (d *desk) join(c *conversation.Conversation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.talk = c
}

func (d *desk) leave() { d.join(nil) }

// answerer returns the process that answered a question.
func (d *desk) answerer(question string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[question]
}

func (d *desk) serve() {
	for {
		c, err := d.socket.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		go d.handle(c)
	}
}

func (d *desk) handle(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(deskClock))
	if err := checkPeer(c); err != nil {
		return
	}
	in := lines.NewReader(c, maxCall)
	if !in.Next() || in.Long {
		return
	}
	var q ownerCall
	var answer ownerReply
	err := json.Unmarshal(in.Text, &q)
	switch {
	case err != nil:
		err = fault.New(fault.ArgError, "that is not a call").Because(err)
	case q.Do == "cancel":
		d.cancel(errCancelled())
	case q.Do == "answer" && q.Reply != nil:
		err = d.answer(q)
	default:
		err = fault.New(fault.ArgError, "there is no call %q", q.Do)
	}
	if err != nil {
		answer.Fault = fault.Of(err)
	}
	line, _ := json.Marshal(answer)
	_, _ = c.Write(append(line, '\n'))
}

func (d *desk) answer(q ownerCall) error {
	r := *q.Reply
	d.mu.Lock()
	talk := d.talk
	first := talk != nil && d.by[r.Question] == 0 // the record names who was first
	if first {
		d.by[r.Question] = q.By
	}
	d.mu.Unlock()
	if talk == nil {
		return fault.New(fault.Conflicting, "no question of %s is open at the moment", d.run.ID)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deskClock)
	defer cancel()
	var err error
	if q.Hide != "" {
		d.run.secrets.add(r.Question, q.Hide)
		err = talk.Hide(ctx, d.run.secrets.values())
	}
	if err == nil {
		_, err = talk.Answer(ctx, r)
	}
	if err != nil && first {
		d.mu.Lock()
		delete(d.by, r.Question)
		d.mu.Unlock()
	}
	return err
}

// Tell passes an answer to the waiting agent of a run. An empty id means the only open question.
func (s Store) Tell(ctx context.Context, r Record, id string, a Answer) error {
	q, err := r.Takes(id, a)
	if err != nil {
		return err
	}
	reply := q.reply(a)
	c := ownerCall{Do: "answer", Reply: &reply, By: a.By}
	if a.Secret {
		c.Hide = a.Text
	}
	return c.send(ctx, r)
}

// End cancels a run, and waits until all its processes have ended. ended reports whether the run was in progress.
func (s Store) End(ctx context.Context, id string) (r Record, ended bool, err error) {
	if r, err = s.Load(ctx, id); err != nil || r.State.Terminal() {
		return r, false, err
	}
	if own, err := s.Acquire(ctx, id); err == nil { // it waits for an answer, and has no owner
		defer own.Release() //nolint:errcheck // the end is written
		err = own.conclude(Verdict{State: Cancelled, Reason: CancelledBy, Fault: errCancelled()}, Ending{},
			own.soFar(ctx))
		return own.Record, true, err
	}
	if err := (ownerCall{Do: "cancel"}).send(ctx, r); err != nil {
		if again, look := s.Load(ctx, id); look == nil && again.State.Terminal() { // it ended meanwhile
			return again, false, nil
		}
		return r, false, err
	}
	r, err = s.Await(ctx, id, nil)
	return r, true, err
}

// Await waits until a run is over, waits for a person without an owner, or satisfies enough, which may be nil. See
// CheckProgress for its errors.
func (s Store) Await(ctx context.Context, id string, enough func(Record) bool) (Record, error) {
	tick, since := time.NewTicker(20*time.Millisecond), time.Now()
	defer tick.Stop()
	for {
		r, err := s.Load(ctx, id)
		if err != nil || r.State.Terminal() || r.WaitsForPerson() || enough != nil && enough(r) {
			return r, err
		}
		if err := s.CheckProgress(r, &since); err != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (q ownerCall) send(ctx context.Context, r Record) error {
	lost := func(err error) error {
		return fault.New(fault.ServiceDown, "the process that carries out %s cannot be reached", r.ID).
			With("run_id", r.ID).Because(err)
	}
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", r.Socket)
	if err != nil {
		return lost(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(deskClock))
	line, err := json.Marshal(q)
	if err != nil {
		return fault.New(fault.Internal, "the call cannot be written").Because(err)
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return lost(err)
	}
	in := lines.NewReader(c, maxCall)
	if !in.Next() {
		return lost(cmp.Or(in.Err(), errors.New("it said nothing")))
	}
	var answer ownerReply
	if err := json.Unmarshal(in.Text, &answer); err != nil {
		return lost(fmt.Errorf("it said something else: %w", err))
	}
	if answer.Fault != nil {
		return answer.Fault
	}
	return nil
}
