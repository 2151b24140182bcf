package process

import "syscall"

func familyThat(how, file string) error {
	if err := startGrandchild(file, &syscall.SysProcAttr{}); err != nil || how == "exits" {
		return err
	}
	return sleepForEver(nil)
}
