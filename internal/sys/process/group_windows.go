package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a running child with everything that it starts: a job object. The job also ends with us, as the parent-death
// signal does on Linux.
type group struct {
	leader  uint32
	process windows.Handle
	job     windows.Handle
}

// startGroup starts the child and puts it into a job. What the child starts in the microseconds before that escapes.
func startGroup(cmd *exec.Cmd) (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
		err = cmd.Start()
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	g := &group{leader: uint32(cmd.Process.Pid), job: job}
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.SYNCHRONIZE
	if g.process, err = windows.OpenProcess(access, false, g.leader); err == nil {
		err = windows.AssignProcessToJobObject(job, g.process)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		g.release()
		return nil, err
	}
	return g, nil
}

func (g *group) kill() { _ = windows.TerminateJobObject(g.job, 1) }

// terminate asks as Ctrl-Break would. Programs without a console do not receive it and are killed after the grace
// period.
func (g *group) terminate() { _ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.leader) }

func (g *group) waitLeader() { _, _ = windows.WaitForSingleObject(g.process, windows.INFINITE) }

// othersAlive asks the job for its number of processes.
func (g *group) othersAlive() bool {
	var accounts struct {
		totalUserTime, totalKernelTime, thisPeriodUserTime, thisPeriodKernelTime int64
		pageFaults, processes, activeProcesses, terminatedProcesses              uint32
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&accounts)), uint32(unsafe.Sizeof(accounts)), nil)
	return err == nil && accounts.activeProcesses > 0
}

func (g *group) release() {
	if g.process != 0 {
		_ = windows.CloseHandle(g.process)
	}
	_ = windows.CloseHandle(g.job)
}

// reap collects the leader of a group that was killed and waits for the others to be gone.
func (g *group) reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	pollUntil(func() bool { return !g.othersAlive() }, time.After(deathTakes))
	g.release()
	return err
}

func ending(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return -1, ""
	}
	return state.ExitCode(), ""
}

// MayExecute is true: the extension decides.
func MayExecute(string) bool { return true }

// identity returns a text that no other process with this number ever has.
func identity(pid int) (string, bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return "", false
	}
	defer windows.CloseHandle(h)
	if state, err := windows.WaitForSingleObject(h, 0); err == nil && state == windows.WAIT_OBJECT_0 {
		return "", false // it has exited, and another process keeps a handle
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return "", false
	}
	return strconv.FormatInt(created.Nanoseconds(), 10), true
}
