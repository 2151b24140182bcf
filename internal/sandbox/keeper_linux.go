package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"omniagent/internal/fault"
	"omniagent/internal/process"
)

// An overlay takes some milliseconds on a busy disk, and two overlays cannot share what was written. So home
// directories are furnished once for all commands of a sandbox, by a stage that only holds them. It copies the mounts
// for each command and hands the copies over; the stage of the command puts them in place.
//
//	caller ── order, then a word for each command ──▶ keeper: home directories in namespaces of its own
//	caller ◀──────────── copies of the mounts ─────── keeper
//	caller ── order, and the copies ──▶ stage of the command
//
// The keeper ends with its caller, whose end of the socket it waits on.
type keeper struct {
	mu      sync.Mutex
	control int // our end
	child   *process.Child
	homes   int // how many are handed over
}

// outermost returns the home directories that lie in no other one.
func outermost(homes []string) (list []string) {
	for _, home := range homes {
		if !slices.ContainsFunc(homes, func(other string) bool { return other != home && within(other, home) }) {
			list = append(list, home)
		}
	}
	return list
}

// hold starts the keeper.
func (w *Walls) hold(h *homes) error {
	o := h.found
	o.Hold, o.Homes, o.Identity = true, w.policy.Homes, exact{w.policy.Identity}
	o.Write = slices.Concat([]string{w.policy.Root, w.policy.Temp}, w.policy.Write)
	if err := o.layers(w.policy.Scratch); err != nil {
		return noHome(err)
	}
	run := &running{say: func(string) {}}
	if err := run.prepare(o); err != nil {
		return noHome(err)
	}
	defer run.order.Close()
	child, err := process.Start(process.Plan{
		Name: "home directories of commands", Path: "/proc/self/exe", Dir: "/",
		Argv: []string{stageName, stageArgument}, Env: stageEnvironment(os.Environ()), Files: run.files(),
		Shape: func(attr *syscall.SysProcAttr) {
			shape(Namespaces, false)(attr)
			attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
		},
	})
	_ = run.theirs.Close()
	if err != nil {
		_ = unix.Close(run.control)
		if passing(err) {
			return fault.New(fault.Internal, "no home directory can be made for commands").Because(err)
		}
		return fault.New(fault.Down, "no home directory can be made for commands").Because(err)
	}
	h.held = &keeper{control: run.control, child: child, homes: len(outermost(w.policy.Homes))}
	return nil
}

// trees returns copies of the home directories.
func (h *keeper) trees() (files []*os.File, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := unix.Sendmsg(h.control, []byte("home"), nil, nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, err
	}
	text, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4*h.homes))
	for {
		n, nr, _, _, err := unix.Recvmsg(h.control, text, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		messages, err := unix.ParseSocketControlMessage(rights[:nr])
		if err != nil || len(messages) == 0 {
			return nil, errors.New(strings.TrimPrefix(string(text[:n]), "failed ") + " (there are no mounts)")
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "home"))
		}
		return files, err
	}
}

func (h *keeper) close() {
	_ = unix.Close(h.control)
	h.child.Wait()
}

// hold furnishes home directories, and hands out copies until the caller has gone.
func hold(o *order) int {
	if err := inhabit(o); err != nil {
		return fail(err)
	}
	for word := make([]byte, 16); ; {
		n, err := unix.Read(controlFile, word)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return 0
		}
		var fds []int
		for _, home := range outermost(o.Homes) {
			fd, err := take(home)
			if err != nil {
				return fail(fmt.Errorf("%s: %w", home, err))
			}
			fds = append(fds, fd)
		}
		err = unix.Sendmsg(controlFile, []byte("home"), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		if err != nil {
			return fail(err)
		}
	}
}

// inhabit puts home directories in place.
func inhabit(o *order) error {
	if err := overrides(false); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	list, homes, err := furnish(o)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, parentsFirst)
	for _, m := range list {
		if err := m.put(); err != nil && !m.optional {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	for _, dir := range o.Write { // where the stage of a command mounts them
		if first(o.Homes, filepath.Dir(dir)) != "" {
			_ = os.MkdirAll(dir, 0o700)
		}
	}
	return homes.close()
}
