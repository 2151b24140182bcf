package stuckprompt

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Waiting asks the kernel what the processes of a program wait for. Input and Terminal mean that one is blocked reading
// what a person would answer: the input that the program was given, which is the pipe or terminal of that description,
// or the terminal of this process. A process that reads another pipe, as most in a shell's pipeline do, waits for a
// program, and does not count. input may be nil.
//
// Resting means that all of them are blocked, and that nothing is known which would wake one before within has passed:
// no clock, no connection, no process that works. Without a limit, which is 0, any clock will.
//
// pids has parents before their children. Waiting reads a file of /proc for each thread, so it is best called when the
// output is quiet.
func Waiting(input fs.FileInfo, pids []int, within time.Duration) Wait {
	p := person{input: input, terminals: []uint64{terminalOf("self")}, within: within}
	if input != nil && input.Mode()&fs.ModeCharDevice != 0 {
		p.terminals = append(p.terminals, device(input))
	}
	seen, rests, unsure := false, true, false
	for _, pid := range slices.Backward(pids) { // children first: the end of one wakes its parent
		process := "/proc/" + strconv.Itoa(pid)
		threads, _ := os.ReadDir(process + "/task") // of a process that is gone, none
		rests = rests && len(threads) > 0
		for _, thread := range threads {
			call, err := os.ReadFile(process + "/task/" + thread.Name() + "/syscall")
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				rests = false
				continue
			}
			seen = true
			switch wait := p.waited(pid, string(call)); wait {
			case Input, Terminal:
				return wait
			case Unknown:
				unsure = true
			case Working:
				rests = false
			}
		}
	}
	switch {
	case !seen || unsure:
		return Unknown
	case rests:
		return Resting
	}
	return Working
}

// person is what leads to the user: the input of a program and the terminals, by device number.
type person struct {
	input     fs.FileInfo
	terminals []uint64
	within    time.Duration
}

// waited judges the system call of a thread, as /proc shows it: "running", or a number and its arguments. The number is
// -1 outside of a call, also of a process that is dead.
func (p person) waited(pid int, call string) Wait {
	process := "/proc/" + strconv.Itoa(pid)
	fields := strings.Fields(call)
	if len(fields) > 0 && fields[0] == "-1" && dead(process) {
		return Resting
	}
	if len(fields) > 0 && (fields[0] == "running" || fields[0] == "-1") {
		return Working
	}
	if len(fields) < 7 {
		return Unknown // we may not look
	}
	number, _ := strconv.Atoi(fields[0])
	var args [6]uint64
	for i := range args {
		args[i], _ = strconv.ParseUint(fields[i+1], 0, 64)
	}
	first := int(int32(args[0]))
	switch number {
	case unix.SYS_READ, unix.SYS_READV:
		return p.behind(process, first)
	case unix.SYS_PSELECT6:
		if first == 1 { // descriptors below 1, so only standard input
			return p.behind(process, 0)
		}
	case unix.SYS_EPOLL_PWAIT:
		return p.polled(process, first, p.sleeps(time.Duration(int32(args[3]))*time.Millisecond))
	case unix.SYS_EPOLL_PWAIT2:
		return p.polled(process, first, p.until(pid, args[3], false))
	case unix.SYS_PPOLL:
		if args[1] == 0 { // no descriptor, so only the clock
			return p.until(pid, args[2], false)
		}
	case unix.SYS_NANOSLEEP:
		return p.until(pid, args[0], false)
	case unix.SYS_CLOCK_NANOSLEEP:
		return p.until(pid, args[2], args[1]&unix.TIMER_ABSTIME != 0)
	case unix.SYS_FUTEX: // its wait with a bit set has a point in time
		return p.until(pid, args[3], args[1]&^(futexPrivate|futexRealtime) != 0)
	case unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_RT_SIGSUSPEND: // a child is looked at for itself
		return Resting
	}
	if runtime.GOARCH == "amd64" && number == pauseAMD64 {
		return Resting
	}
	return Working // for something, such as a connection
}

// pauseAMD64 is pause, which most architectures do not have.
const pauseAMD64 = 34

// behind returns who is at the other end of a descriptor that is read: Working for what may come by itself, and Resting
// for a pipe, at whose other end a process of the same program is.
func (p person) behind(process string, descriptor int) Wait {
	link := process + "/fd/" + strconv.Itoa(descriptor)
	file, err := os.Stat(link)
	if err != nil {
		return Unknown
	}
	if file.Mode()&fs.ModeCharDevice == 0 {
		if p.input != nil && os.SameFile(file, p.input) {
			return Input
		}
		if name, _ := os.Readlink(link); strings.HasPrefix(name, "pipe:") { // any program may open one with a name
			return Resting
		}
		return Working
	}
	number := device(file)
	if name, _ := os.Readlink(link); name == "/dev/tty" {
		number = terminalOf(strings.TrimPrefix(process, "/proc/"))
	}
	for _, terminal := range p.terminals {
		if number == terminal && number != 0 {
			return Terminal
		}
	}
	return Working
}

// polled judges a set of descriptors, of which clock says how long the wait for them lasts. It is Unknown for a set
// that has one that leads to the user, since it has others, too.
func (p person) polled(process string, set int, clock Wait) Wait {
	info, err := os.ReadFile(process + "/fdinfo/" + strconv.Itoa(set))
	if err != nil {
		return Unknown
	}
	for line := range strings.Lines(string(info)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "tfd:" {
			continue
		}
		descriptor, err := strconv.Atoi(fields[1])
		if err != nil {
			return Unknown
		}
		target, _ := os.Readlink(process + "/fd/" + fields[1])
		switch wait := p.behind(process, descriptor); {
		case target == "anon_inode:[eventfd]": // another thread wakes it
		case wait == Working:
			clock = Working
		case wait != Resting:
			return Unknown
		}
	}
	return clock
}

// device returns the number of a device file.
func device(file fs.FileInfo) uint64 {
	if stat, ok := file.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Rdev)
	}
	return 0
}

// terminalOf returns the number of the terminal that controls a process, or 0.
func terminalOf(pid string) uint64 {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	// The name of the program stands in parentheses and may contain blanks and parentheses. Behind it come the state,
	// the parent, the group, the session and the terminal.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 5 {
		return 0
	}
	number, _ := strconv.ParseUint(fields[4], 10, 64)
	return number
}
