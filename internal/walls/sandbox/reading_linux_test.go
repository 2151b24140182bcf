package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// queue is one of POSIX outside.
func (g ground) queue() string { return "omniagent" + strings.ReplaceAll(g.dir, "/", "-") }

// runtime is a directory of services outside, with a login in it; "" without the right to make one.
func (g ground) runtime() string { return "/run/omniagent" + strings.ReplaceAll(g.dir, "/", "-") }

// ticket is a secret of the user outside, in a directory of temporary files.
func (g ground) ticket(dir string) string {
	return dir + "/omniagent" + strings.ReplaceAll(g.dir, "/", "-")
}

func (x target) reading() []attack {
	login := x.runtime() + "/login"
	return []attack{
		{"read a login in /run", func() error { return opens(login, os.O_RDONLY) }},
		{"read a login in /var/run", func() error { return opens("/var"+login, os.O_RDONLY) }},
		{"read a login in /run over /proc", func() error { return opens("/proc/self/root"+login, os.O_RDONLY) }},
		{"read a login in /run from there", func() error {
			run, err := os.OpenRoot("/run")
			if err != nil {
				return err
			}
			_, err = run.ReadFile(filepath.Base(x.runtime()) + "/login")
			return errors.Join(err, run.Close())
		}},
		{"read a ticket in /tmp", func() error { return opens(x.ticket("/tmp"), os.O_RDONLY) }},
		{"read a ticket in /var/tmp", func() error { return opens(x.ticket("/var/tmp"), os.O_RDONLY) }},
		{"read a ticket in /tmp over /proc", func() error {
			return opens("/proc/self/root"+x.ticket("/tmp"), os.O_RDONLY)
		}},
		{"make a name for a ticket in /tmp", func() error {
			return errors.Join(os.Link(x.ticket("/tmp"), x.root+"/ticket"), opens(x.root+"/ticket", os.O_RDONLY))
		}},
		{"link a login in /run", func() error {
			return errors.Join(os.Symlink(login, x.root+"/login"), opens(x.root+"/login", os.O_RDONLY))
		}},
		{"read what is hidden", func() error { return opens(x.secret+"/key", os.O_RDONLY) }},
		{
			"read what is hidden over /proc",
			func() error { return opens("/proc/self/root"+x.secret+"/key", os.O_RDONLY) },
		},
		{"read a hidden file", func() error { _, err := os.ReadFile(x.dir + "/hidden file"); return err }},
		{"run what is hidden", func() error { return exec.Command(x.secret + "/program").Run() }},
		{
			"make what is hidden readable",
			func() error { return errors.Join(os.Chmod(x.secret, 0o700), opens(x.secret+"/key", os.O_RDONLY)) },
		},
		{"move what is hidden", func() error { return os.Rename(x.secret, x.root+"/secret") }},
		{"link what is hidden", func() error {
			return errors.Join(os.Link(x.secret+"/key", x.root+"/key"), opens(x.root+"/key", os.O_RDONLY))
		}},
		{
			"read the environment of a process outside",
			func() error { return opens(fmt.Sprintf("/proc/%d/environ", x.pid), os.O_RDONLY) },
		},
		{"read the environment of process 1", func() error { return opens("/proc/1/environ", os.O_RDONLY) }},
	}
}
