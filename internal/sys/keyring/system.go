package keyring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/sys/process"
)

// patience is how long the system's keyring may take: it may ask the user to unlock it.
const patience = 60 * time.Second

// service is the name under which the keys are in the system's keyring.
const service = "omniagent"

// systemOf returns the keyring of a system; nil: it has none that answers.
func systemOf(goos string, by process.Programs) system {
	lookup := process.In(by.Env)
	switch goos {
	case "linux", "freebsd", "openbsd", "netbsd":
		if tool := by.Find("secret-tool"); tool != "" && hasBus(lookup) {
			return secretTool{tool, by}
		}
	case "darwin":
		if tool := by.Find("security"); tool != "" {
			return security{tool, by}
		}
	}
	return nil
}

// hasBus reports whether there is a session's D-Bus. Without one secret-tool would try to start one, with a keyring
// that is gone when it ends.
func hasBus(lookup func(string) (string, bool)) bool {
	if address, ok := lookup("DBUS_SESSION_BUS_ADDRESS"); ok && address != "" {
		return true
	}
	dir, ok := lookup("XDG_RUNTIME_DIR")
	if !ok || dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

// run starts the system's program. Its output is never part of an error: it may hold a key.
func run(ctx context.Context, by process.Programs, stdin string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := by.Run(ctx, process.Spec{
		Argv: argv, Stdin: []byte(stdin), MaxOutput: 64 << 10, Grace: time.Second,
	})
	name := filepath.Base(argv[0])
	switch {
	case err != nil:
		return "", errors.New(name + " could not be asked")
	case r.ExitCode != 0:
		return "", errors.New(name + " failed")
	}
	return string(r.Stdout), nil
}

// secretTool is the program of libsecret, which asks the Secret Service. It reads the key from standard input.
type secretTool struct {
	path string
	by   process.Programs
}

func (s secretTool) attributes(verb, name string, more ...string) []string {
	return append(append([]string{s.path, verb}, more...), "service", service, "account", name)
}

func (s secretTool) set(ctx context.Context, name, key string) error {
	_, err := run(ctx, s.by, key, s.attributes("store", name, "--label=omniagent: "+name)...)
	return err
}

func (s secretTool) get(ctx context.Context, name string) (string, error) {
	out, err := run(ctx, s.by, "", s.attributes("lookup", name)...)
	return strings.TrimRight(out, "\r\n"), err
}

func (s secretTool) remove(ctx context.Context, name string) error {
	_, err := run(ctx, s.by, "", s.attributes("clear", name)...)
	return err
}

// security is the program of macOS. It takes the commands that hold a key from standard input.
type security struct {
	path string
	by   process.Programs
}

func (s security) set(ctx context.Context, name, key string) error {
	if strings.ContainsAny(key, `"\`) {
		return errors.New("the key has characters that security does not take")
	}
	_, err := run(ctx, s.by, `add-generic-password -U -s `+service+` -a "`+name+`" -l "omniagent: `+name+`" -w "`+key+"\"\n",
		s.path, "-i")
	return err
}

func (s security) get(ctx context.Context, name string) (string, error) {
	out, err := run(ctx, s.by, "", s.path, "find-generic-password", "-s", service, "-a", name, "-w")
	return strings.TrimRight(out, "\r\n"), err
}

func (s security) remove(ctx context.Context, name string) error {
	_, err := run(ctx, s.by, "", s.path, "delete-generic-password", "-s", service, "-a", name)
	return err
}
