package prompt

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Waiting asks the kernel whether a process of a program is blocked reading what a person would answer: the input that
// the program was given, which is the pipe or terminal of that description, or the terminal of this process. A process
// that reads another pipe, as most in a shell's pipeline do, waits for a program, and does not count. input may be nil.
//
// It reads a file of /proc for each thread, so it is best called when the output is quiet.
func Waiting(input fs.FileInfo, pids []int) Wait {
	p := person{input: input, terminals: []uint64{terminalOf("self")}}
	if input != nil && input.Mode()&fs.ModeCharDevice != 0 {
		p.terminals = append(p.terminals, device(input))
	}
	seen, unsure := false, false
	for _, pid := range pids {
		process := "/proc/" + strconv.Itoa(pid)
		threads, _ := os.ReadDir(process + "/task") // of a process that is gone, none
		for _, thread := range threads {
			call, err := os.ReadFile(process + "/task/" + thread.Name() + "/syscall")
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue
			}
			seen = true
			switch wait := p.waited(process, string(call)); wait {
			case Input, Terminal:
				return wait
			case Unknown:
				unsure = true
			}
		}
	}
	if !seen || unsure {
		return Unknown
	}
	return Working
}

// person is what leads to the user: the input of a program and the terminals, by device number.
type person struct {
	input     fs.FileInfo
	terminals []uint64
}

// waited judges the system call of a thread, as /proc shows it: "running", or a number and its arguments. The number is
// -1 outside of a call, also of a process that is dead.
func (p person) waited(process, call string) Wait {
	fields := strings.Fields(call)
	if len(fields) > 0 && (fields[0] == "running" || fields[0] == "-1") {
		return Working
	}
	if len(fields) < 2 {
		return Unknown // we may not look
	}
	number, _ := strconv.Atoi(fields[0])
	first := 0
	if n, err := strconv.ParseInt(fields[1], 0, 32); err == nil {
		first = int(n)
	}
	switch number {
	case unix.SYS_READ, unix.SYS_READV:
		return p.behind(process, first)
	case unix.SYS_PSELECT6:
		if first == 1 { // descriptors below 1, so only standard input
			return p.behind(process, 0)
		}
	case unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2:
		return p.polled(process, first)
	case unix.SYS_WRITE, unix.SYS_FUTEX, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
		unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT:
		return Working
	}
	return Unknown
}

// behind returns who is at the other end of a descriptor that is read: Working for a program.
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

// polled returns Unknown for a set that has a descriptor that leads to the user, since it has others, too.
func (p person) polled(process string, set int) Wait {
	info, err := os.ReadFile(process + "/fdinfo/" + strconv.Itoa(set))
	if err != nil {
		return Unknown
	}
	for line := range strings.Lines(string(info)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "tfd:" {
			continue
		}
		if descriptor, err := strconv.Atoi(fields[1]); err != nil || p.behind(process, descriptor) != Working {
			return Unknown
		}
	}
	return Working
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
