package provider

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/sys/workspace"
)

// Activate makes a profile of the user the active one. It writes models.active to the file that already has it, or else
// to the profile's own file, and leaves every other byte unchanged. was is the previous value.
func Activate(ctx context.Context, home string, p Profile, dry bool) (file, was string, err error) {
	if p.Layer != User {
		return "", "", fault.New(fault.ArgError, "%s belongs to the project %s", p.Title(), p.File).
			Hint("Its own models.active chooses it; your own profiles are listed by omniagent models list.")
	}
	file = p.File
	for _, path := range slices.Backward(EidolonFiles(home)) {
		data, err := workspace.ReadFile(path, maxEidolon)
		if err != nil {
			continue
		}
		if tree, err := literal.ParseJSON5(data); err == nil && member(tree, "models", "active") != "" {
			file = path
			break
		}
	}
	held, err := workspace.Lock(ctx, file+".lock", 2*time.Second)
	if err != nil {
		return file, "", err
	}
	defer func() { held.Unlock(); _ = os.Remove(file + ".lock") }()
	data, err := workspace.ReadFile(file, maxEidolon)
	if err != nil {
		return file, "", err
	}
	edited, was, err := withActive(data, p.Name)
	if err != nil {
		return file, was, fault.New(fault.ConfigInvalid, "%s cannot be edited", file).Because(err)
	}
	if dry || was == p.Name {
		return file, was, nil
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	return file, was, workspace.WriteFile(file, edited, mode)
}

// withActive returns the text of a file with another models.active.
func withActive(data []byte, name string) (edited []byte, was string, err error) {
	tree, err := literal.ParseJSON5(data)
	if err != nil {
		return nil, "", err
	}
	models, ok := tree.Member("models")
	if !ok || models.Value.Kind != literal.Object {
		return nil, "", errors.New("it has no models")
	}
	if active, ok := models.Value.Member("active"); ok {
		was = active.Value.Str
	}
	edited, err = literal.SetJSON(data, []string{"models", "active"}, name)
	return edited, was, err
}
