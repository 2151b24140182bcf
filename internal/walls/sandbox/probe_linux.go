package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func probe(ctx context.Context, o Options, r *Report) {
	r.Privileged = privileged()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		r.add(Fact{Name: FactWalls, Detail: fmt.Sprintf("nothing was tried: %v", err)})
		r.Holes = holes(None, 0)
		return
	}
	defer null.Close()

	// Failures of the command itself must not count as refusals of the kernel.
	baseline := try(ctx, o.Self, null, nil)
	abi := probeLandlock(ctx, r, o.Self, null, baseline)
	probeSeccomp(ctx, r)
	probeNamespaces(ctx, r, o.Self, null, baseline)

	switch {
	case !r.fact(FactLandlockEnforced).OK || !r.fact(FactSeccompEnforced).OK:
		r.Tier = None
	case r.fact(FactUserNamespace).OK && r.fact(FactMountNamespace).OK:
		// A network namespace is not needed: seccomp refuses sockets.
		r.Tier = Namespaces
	default:
		r.Tier = Landlock
	}
	r.Holes = holes(r.Tier, abi)
	if o.Stage && r.Tier != None {
		probeWalls(ctx, r)
	}
}

// probeWalls builds sandboxes from the best tier down, and reports the first that holds.
func probeWalls(ctx context.Context, r *Report) {
	f := Fact{Name: FactWallsHold}
	for tier := r.Tier; tier <= Landlock; tier++ {
		if ctx.Err() != nil {
			f.Detail = notTried(ctx.Err()).Error()
			break
		}
		holes, err := rehearse(tier, Policy{})
		if err == nil {
			f.OK, f.Detail = true, sentence("what was tried from behind walls of the tier "+tier.String()+
				" was refused", f.Detail)
			r.Tier, r.Holes = tier, holes
			break
		}
		f.Detail = sentence(f.Detail, tier.String()+": "+err.Error())
	}
	if !f.OK {
		r.Tier, r.Holes = None, []string{noWall}
	}
	r.add(f)
}

func probeLandlock(ctx context.Context, r *Report, self []string, null *os.File, baseline error) (abi int) {
	abi, err := landlockABI()
	f := Fact{Name: FactLandlock, OK: err == nil, Detail: fmt.Sprintf("ABI %d", abi)}
	switch {
	case errors.Is(err, unix.ENOSYS):
		f.Detail, f.Fix = "this kernel is built without it", "use a kernel with CONFIG_SECURITY_LANDLOCK"
	case errors.Is(err, unix.EOPNOTSUPP) && walled():
		f.Detail, f.Fix = withinWalls, "run it outside of them"
	case errors.Is(err, unix.EOPNOTSUPP):
		f.Detail, f.Fix = "switched off at boot", "add landlock to the kernel parameter lsm="
	case err != nil:
		f.Detail, f.Fix = "refused: "+
			err.Error(), "if this is a container, allow the landlock system calls in its seccomp profile"
	}
	r.add(f)

	f = Fact{Name: FactLandlockEnforced}
	switch {
	case err != nil:
		f.Detail = "not tried: no Landlock"
	case ctx.Err() != nil:
		f.Detail = notTried(ctx.Err()).Error()
	default:
		child := baseline == nil
		if err := onDoomedThread(func() error { return tryLandlock(ctx, self, null, child) }); err != nil {
			f.Detail = err.Error()
			break
		}
		f.OK, f.Detail = true, "a thread that asked for it could not write"
		if child {
			f.Detail += ", and its child could not start a program"
		}
	}
	r.add(f)
	return abi
}

func probeSeccomp(ctx context.Context, r *Report) {
	err := seccompActions()
	f := Fact{Name: FactSeccomp, OK: err == nil, Detail: "filters can refuse a call or end the process"}
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		f.Detail, f.Fix = "refused: "+err.Error(), "if this is a container, allow seccomp in its seccomp profile"
	case err != nil:
		f.Detail, f.Fix = "this kernel is built without it: "+err.Error(), "use a kernel with CONFIG_SECCOMP_FILTER"
	}
	r.add(f)

	f = Fact{Name: FactSeccompEnforced}
	switch {
	case err != nil:
		f.Detail = "not tried: no seccomp"
	case ctx.Err() != nil:
		f.Detail = notTried(ctx.Err()).Error()
	default:
		f.Detail = "a thread that asked for it could not make a system call"
		if err := onDoomedThread(trySeccomp); err != nil {
			f.Detail = err.Error()
		} else {
			f.OK = true
		}
	}
	r.add(f)
}

// probeNamespaces starts Self in new namespaces. Only the user namespace is created together with the process; the
// child asks for the rest itself. For an unconfined parent the kernel grants everything in the child's namespace, even
// where AppArmor leaves the child without capabilities in it (Ubuntu), and the answer would be too good. With
// CLONE_NEWNS among Unshareflags, Go's child also makes its mounts private: that is one mount done.
func probeNamespaces(ctx context.Context, r *Report, self []string, null *os.File, baseline error) {
	for _, space := range []struct {
		name    string
		unshare uintptr
		limit   string
		done    string
	}{
		{FactUserNamespace, 0, "user.max_user_namespaces", "a process was started in one"},
		{
			FactMountNamespace, unix.CLONE_NEWNS, "user.max_mnt_namespaces",
			"a process made one inside a user namespace and mounted there",
		},
		{
			FactNetworkNamespace, unix.CLONE_NEWNET, "user.max_net_namespaces",
			"a process made one inside a user namespace",
		},
	} {
		f := Fact{Name: space.name, Detail: space.done}
		switch {
		case baseline != nil:
			f.Detail = baselineText(baseline)
		case space.unshare != 0 && !r.fact(FactUserNamespace).OK:
			f.Detail = "not tried: no user namespace"
		default:
			err := try(ctx, self, null, &syscall.SysProcAttr{
				Cloneflags:   unix.CLONE_NEWUSER,
				Unshareflags: space.unshare,
				UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
				GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			})
			f.OK = err == nil
			reason, fix := NamespaceSettings(space.limit)
			switch {
			case err != nil:
				f.Detail, f.Fix = sentence(refusal(err), reason), fix
				if fix == "" && errors.Is(err, unix.EPERM) {
					f.Fix = InContainer
				}
			case r.Privileged:
				f.Detail = sentence(f.Detail, "tried with privileges, so it need not hold for other users", reason)
			}
		}
		r.add(f)
	}
}

// refusal describes a failed attempt. For namespaces, ENOSPC has nothing to do with a disk.
func refusal(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		return "the limit on namespaces is reached"
	case errors.Is(err, unix.EINVAL):
		return "this kernel is built without it"
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return "refused: " + err.Error()
	}
	return err.Error()
}

func baselineText(err error) string {
	if errors.Is(err, errNoSelf) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err.Error()
	}
	return "not tried: the command to try it with fails by itself: " + err.Error()
}

// InContainer is the advice where no setting of this system denies a namespace.
const InContainer = "if this is a container, allow new namespaces in its seccomp and AppArmor profiles"

// NamespaceSettings returns the settings of this system that deny new namespaces to a user without privileges, with the
// limit on one kind. They only serve to explain and to advise: the attempt decides.
func NamespaceSettings(limit string) (reason, fix string) {
	var reasons, fixes []string
	for _, s := range []struct{ name, bad, fix string }{
		{"kernel.unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{
			"kernel.apparmor_restrict_unprivileged_userns", "1",
			"an AppArmor profile that allows this program userns, or sysctl -w " +
				"kernel.apparmor_restrict_unprivileged_userns=0",
		},
		{"user.max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"},
		{limit, "0", "sysctl -w " + limit + "=15000"},
	} {
		data, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
		text := s.name + " is " + s.bad
		if err != nil || strings.TrimSpace(string(data)) != s.bad || slices.Contains(reasons, text) {
			continue
		}
		reasons, fixes = append(reasons, text), append(fixes, s.fix)
	}
	return sentence(reasons...), sentence(fixes...)
}

// holes lists what the sandbox of a tier leaves open on a kernel with that Landlock ABI.
func holes(t Tier, abi int) []string {
	if t == None {
		return []string{noWall}
	}
	var list []string
	if t == Landlock {
		list = append(list,
			"chmod, chown and utimes of files outside the workspace",
			"setting extended attributes of files outside the workspace",
		)
		if abi < 3 {
			list = append(list, "truncating files outside the workspace")
		}
	}
	if abi < 5 {
		list = append(list, "ioctl on devices")
	}
	if abi < 6 {
		list = append(list, "signals to processes outside")
	}
	return list
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// privileged reports whether this process is root or has capabilities, which a service manager or a container may grant
// to another user.
func privileged() bool {
	if os.Geteuid() == 0 {
		return true
	}
	have, err := capabilities()
	return err == nil && have[0].Effective|have[1].Effective != 0
}

// fact returns the fact of that name. A fact that was not examined is not OK.
func (r *Report) fact(name string) Fact {
	for _, f := range r.Facts {
		if f.Name == name {
			return f
		}
	}
	return Fact{Name: name}
}

// sentence joins the parts that are not empty.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
