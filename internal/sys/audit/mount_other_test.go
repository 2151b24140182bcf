//go:build !linux

package audit

import "errors"

func mountTiny(string) error { return errors.ErrUnsupported }
func unmount(string) error   { return nil }
