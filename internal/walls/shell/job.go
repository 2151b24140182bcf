package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/kit/fault"
)

// maxJobs is how many commands may run in the background at a time.
const maxJobs = 16

// Job is a command in the background.
type Job struct {
	ID      string
	Running bool
	Outcome Outcome // once it has ended: how it ended, without its output
}

// job is the internal state of a Job.
type job struct {
	id      string
	record  *commandOutput
	stop    context.CancelFunc
	ended   chan struct{}
	outcome Outcome // set when ended is closed

	reading          sync.Mutex
	outRead, errRead int64 // bytes of its output that were read
}

// Start starts a command in the background, in the directory of the conversation, which it does not change. It runs
// until it exits, Kill ends it, or the conversation ends; its Timeout is ignored. ctx ends only the start.
func (s *Shell) Start(ctx context.Context, c Command) (Job, error) {
	if err := s.enter(); err != nil {
		return Job{}, err
	}
	if err := s.reserve(); err != nil {
		s.running.Done()
		return Job{}, err
	}
	r := newRecord(s.spills)
	run, err := s.begin(ctx, c, r)
	if err != nil {
		s.mu.Lock()
		s.begun--
		s.mu.Unlock()
		s.running.Done()
		return Job{}, err
	}
	over, stop := context.WithCancel(s.over)
	s.mu.Lock()
	s.begun--
	j := &job{id: fmt.Sprintf("bash_%d", len(s.jobs)+1), record: r, stop: stop, ended: make(chan struct{})}
	s.jobs = append(s.jobs, j)
	s.forget()
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		defer stop()
		j.outcome = s.await(over, run, 0)
		run.finalDir()
		r.finish()
		close(j.ended)
	}()
	return j.state(), nil
}

// reserve reserves one of the places for background commands.
func (s *Shell) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := s.begun
	for _, j := range s.jobs {
		if j.state().Running {
			running++
		}
	}
	if running >= maxJobs {
		return fault.New(fault.TooManyRequests, "%d commands run in the background already", running).
			Hint("End one of them first.")
	}
	s.begun++
	return nil
}

// maxUnread is how many ended commands may keep output that was not read yet.
const maxUnread = 32

// forget drops the oldest ended commands with unread output, because each keeps files open. The lock is held.
func (s *Shell) forget() {
	ended := 0
	for _, j := range slices.Backward(s.jobs) {
		if j.state().Running {
			continue
		}
		if ended++; ended > maxUnread && j.reading.TryLock() {
			j.record.discard()
			j.reading.Unlock()
		}
	}
}

// Jobs returns all background commands, the oldest first.
func (s *Shell) Jobs() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Job
	for _, j := range s.jobs {
		all = append(all, j.state())
	}
	return all
}

func (s *Shell) job(id string) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, j := range s.jobs {
		if j.id == id {
			return j, nil
		}
		known = append(known, j.id)
	}
	f := fault.New(fault.NotFoundCode, "there is no background command %q", id)
	if len(known) == 0 {
		return nil, f.Hint("None was started.")
	}
	return nil, f.Hint("There are: %s.", strings.Join(known[max(0, len(known)-maxJobs):], ", "))
}

func (j *job) state() Job {
	state := Job{ID: j.id, Running: true}
	select {
	case <-j.ended:
		state.Running, state.Outcome = false, j.outcome
	default:
	}
	return state
}

// Output returns what a background command has printed since the last call, in the Outcome of the Job. With a filter it
// returns the matching lines; the others count as read.
func (s *Shell) Output(id string, filter *regexp.Regexp) (Job, error) {
	j, err := s.job(id)
	if err != nil {
		return Job{}, err
	}
	j.reading.Lock()
	defer j.reading.Unlock()
	state := j.state() // before reading, so that the output of an ended command is complete
	state.Outcome.Stdout, state.Outcome.Stderr = j.unread(filter, !state.Running)
	state.Outcome.Masked = j.record.masked()
	if !state.Running {
		j.record.discard()
	}
	return state, nil
}

// Wait returns when a background command is over, or ctx is. It does not wait for one that does not exist.
func (s *Shell) Wait(ctx context.Context, id string) {
	j, err := s.job(id)
	if err != nil {
		return
	}
	select {
	case <-j.ended:
	case <-ctx.Done():
	}
}

// Kill ends a background command, and returns when nothing of it is left.
func (s *Shell) Kill(id string) (Job, error) {
	j, err := s.job(id)
	if err != nil {
		return Job{}, err
	}
	j.stop()
	<-j.ended
	return j.state(), nil
}

// unread reads the new output of both streams.
func (j *job) unread(filter *regexp.Regexp, ended bool) (out, err string) {
	r := j.record
	r.mu.Lock()
	defer r.mu.Unlock()
	var both commandOutput
	for _, each := range []struct {
		from, to *stream
		read     *int64
	}{{&r.out, &both.out, &j.outRead}, {&r.err, &both.err, &j.errRead}} {
		if filter == nil { // a filter applies to whole lines
			r.take(each.from)
		}
		each.to.of = each.from
		*each.read = each.from.since(*each.read, each.to, filter, ended)
	}
	return both.text()
}

// since copies the output after position from to another stream, and returns how many bytes it copied. In a filtered
// stream that has not ended, an unfinished last line has to wait.
func (s *stream) since(from int64, to *stream, filter *regexp.Regexp, ended bool) int64 {
	if from >= s.size {
		return from
	}
	source, kept := io.Reader(strings.NewReader(string(s.head))), int64(len(s.head))
	if s.file != nil {
		source, kept = io.NewSectionReader(s.file, 0, s.stored), s.stored
	}
	if at, ok := source.(io.Seeker); ok && from < kept {
		_, _ = at.Seek(from, io.SeekStart)
	} else {
		source = strings.NewReader("")
	}
	if missing := s.size - max(from, kept); missing > 0 {
		end := s.end()
		end = end[max(0, len(end)-int(min(missing, int64(len(end))))):]
		if gap := missing - int64(len(end)); gap > 0 {
			end = fmt.Sprintf("[%d bytes were not kept]\n", gap) + end
		}
		source = io.MultiReader(source, strings.NewReader(end))
	}
	lines := bufio.NewReaderSize(source, maxPending) // no lines.Reader: a long line comes in pieces, and all of it
	for {
		line, err := lines.ReadSlice('\n')
		if filter != nil && !ended && errors.Is(err, io.EOF) {
			return s.size - int64(len(line))
		}
		if len(line) > 0 && (filter == nil || filter.Match(bytes.TrimSuffix(line, []byte("\n")))) {
			to.add(string(line))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return s.size
		}
	}
}
