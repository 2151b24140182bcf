package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
)

// An overlay takes some milliseconds on a busy disk, and two overlays cannot share what was written. So a stage builds
// the home directories once for all commands of a sandbox. For each command it sends copies of the mounts to the stage
// of the command, which puts them in place.
//
//	caller ── order, then a socket for each command ──▶ homeServer: home directories in namespaces of its own
//	caller ── order, and the other end ──▶ stage of the command ◀── copies of the mounts ── homeServer
//
// The homeServer ends when the caller closes its end of the socket.
type homeServer struct {
	control int // our end
	child   *process.Child
	carries bool
}

// outermost returns the home directories that do not lie in another one.
func outermost(homes []string) (list []string) {
	for _, home := range homes {
		holds := func(other string) bool { return other != home && pathname.Within(other, home) }
		if !slices.ContainsFunc(homes, holds) {
			list = append(list, home)
		}
	}
	return list
}

// hold starts the home server.
func (w *Walls) hold(h *homes) error {
	o := h.found
	o.Hold, o.Homes, o.Identity = true, w.policy.Homes, exact{w.policy.Identity}
	o.Write = slices.Concat([]string{w.policy.Root, w.policy.Temp}, w.policy.Write)
	o.Lives, o.Files = w.system.lives, w.system.files
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
		Bound: true, // it starts nothing, and waits for the end of the socket
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
		return fault.New(fault.ServiceDown, "no home directory can be made for commands").Because(err)
	}
	h.held = &homeServer{run.control, child, o.Lives && len(o.Files) > 0}
	return nil
}

// ask requests the home directories for a command. Its stage receives them from the returned file.
func (h *homeServer) ask() (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Sendmsg(h.control, []byte("home"), unix.UnixRights(pair[0]), nil, unix.MSG_NOSIGNAL)
	_ = unix.Close(pair[0])
	return os.NewFile(uintptr(pair[1]), "home"), err
}

// receiveHomes receives the home directories in a stage.
func receiveHomes(o *order) (fds []int, err error) {
	text, fds, err := withRights(homeFile, len(o.Homes))
	if err == nil && len(fds) != len(outermost(o.Homes)) {
		err = fmt.Errorf("there are no home directories: %s", strings.TrimPrefix(text, "failed "))
	}
	return fds, err
}

// withRights receives a message with descriptors.
func withRights(from, most int) (text string, fds []int, err error) {
	block, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4*most))
	for {
		n, nr, _, _, err := unix.Recvmsg(from, block, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		messages, err := unix.ParseSocketControlMessage(rights[:nr])
		if err != nil || len(messages) == 0 {
			return string(block[:n]), nil, err
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		return string(block[:n]), fds, err
	}
}

// close ends the home server. If it syncs files, close waits for the last change, but not for the end of the process:
// the kernel takes some 16 ms to close its inotify watch.
func (h *homeServer) close() {
	if !h.carries {
		_ = unix.Close(h.control)
		h.child.Wait()
		return
	}
	_ = unix.Shutdown(h.control, unix.SHUT_WR)
	_, _, _ = withRights(h.control, 0)
	_ = unix.Close(h.control)
	go h.child.Wait()
}

// hold builds the home directories, and hands out copies until the caller has gone.
func hold(o *order) int {
	carried, failed := buildHomes(o)
	ours := o.standing()
	defer func() {
		carried.close()
		tell("carried")
	}()
	for {
		word, to, err := withRights(controlFile, 1)
		if err != nil || len(to) == 0 {
			return 0
		}
		if word == wordLeft {
			listLeft(o, ours, to[0])
			_ = unix.Close(to[0])
			continue
		}
		var fds []int
		for _, home := range outermost(o.Homes) {
			fd, err := take(home)
			if failed = errors.Join(failed, err); err == nil {
				fds = append(fds, fd)
			}
		}
		if failed != nil {
			_ = unix.Sendmsg(to[0], []byte("failed "+failed.Error()), nil, nil, unix.MSG_NOSIGNAL)
		} else {
			_ = unix.Sendmsg(to[0], []byte("home"), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		}
		for _, fd := range append(fds, to[0]) {
			_ = unix.Close(fd)
		}
	}
}

// buildHomes mounts the home directories. carried syncs files between them and the real ones.
func buildHomes(o *order) (carried *fileSync, err error) {
	if err := overrides(false); err != nil {
		return nil, err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	outside, err := fetch(o)
	if err != nil {
		return nil, err
	}
	list, homes, err := mountHomes(o)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, parentsFirst)
	if err := putAll(list); err != nil {
		return nil, err
	}
	for _, dir := range o.Write { // where the stage of a command mounts them
		if first(o.Homes, filepath.Dir(dir)) != "" {
			_ = os.MkdirAll(dir, 0o700)
		}
	}
	if o.Lives {
		return outside.carry()
	}
	return nil, homes.close()
}
