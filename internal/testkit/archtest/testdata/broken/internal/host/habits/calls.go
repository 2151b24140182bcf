package habits

import (
	"os"
	"os/exec"
	"syscall"
)

func move(f *os.File) error {
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := syscall.Chdir("/"); err != nil {
		return err
	}
	return f.Chdir()
}

func shells() []any {
	return []any{
		exec.Command("sh", "-c", "true"),
		exec.Command("/bin/bash", "-lc", "true"),
		[]string{"powershell.exe", "-Command", "x"},
		exec.Command("cmd", "/C", "x"),
		exec.Command("sh", "file"),            // a script is a program
		[]string{"bash", "zsh", "powershell"}, // names
		exec.Command("git", "-c", "a=b"),
	}
}
