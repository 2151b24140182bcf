package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/runs"
	"omniagent/internal/cli/stores"
	"omniagent/internal/sys/workspace"
)

type statusData struct {
	LoggedIn       *bool                           `json:"logged_in" doc:"omniagent login has stored a key; null: it has not, and agents keep their own logins"`
	User           string                          `json:"user"`
	CurrentContext *string                         `json:"current_context"`
	TokenExpires   *string                         `json:"token_expires"`
	Instance       string                          `json:"instance"`
	Sessions       sessionPlace                    `json:"sessions"`
	Keys           []storedKey                     `json:"keys" doc:"of model APIs, never their text: those of the environment, then stored ones"`
	Runs           contract.Foreigns[runs.LiveRun] `json:"runs" doc:"that are not over"`
	ConfigFiles    []pathRow                       `json:"config_files"`
	StateFiles     []stateFile                     `json:"state_files"`
	SideEffects    []sideEffect                    `json:"side_effects"`
	Config         any                             `json:"config" doc:"with --show-config"`
}

type sessionPlace struct {
	Path *string `json:"path" doc:"where conversations lie; null: no home is known"`
	Kept bool    `json:"kept" doc:"whether new ones are kept, which session.keep says"`
}

type stateFile struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Exists bool   `json:"exists"`
	Bytes  int64  `json:"bytes"`
}

type sideEffect struct {
	Command string `json:"command"`
	Path    string `json:"path"`
	Type    string `json:"type"`
	Clear   string `json:"clearable_with"`
}

func (p commands) status() *contract.Command {
	return &contract.Command{
		Path: "status", Summary: "show what is configured and what is kept on disk", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0",
		LooseConfig: true, Scopes: []string{}, Output: contract.TypeOf[statusData](),
		Volatile: []string{"state_files.bytes", "runs", "keys"},
		Params: []contract.Param{
			{Name: "show-config", Kind: contract.Bool, Help: "every setting with its source"},
			{Name: "show-side-effects", Kind: contract.Bool, Help: "what each command leaves on disk"},
			{Name: "show-state-files", Kind: contract.Bool, Help: "the files and directories that hold state"},
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "the state is shown"}},
		Examples: []contract.Example{
			{Description: "An overview", Command: "omniagent status"},
			{Description: "Why a setting has its value", Command: "omniagent status --show-config"},
		},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			data := statusData{
				Runs: runs.Live(ctx, c),
				User: contract.Operator(c.Host), CurrentContext: contract.OrNil(c.Config.ContextName()),
				Instance:    c.Instance(),
				ConfigFiles: configFiles(c),
			}
			var err error
			if data.Keys, err = p.keysHere(c); err != nil {
				c.Warn("KEYS_UNREADABLE", "%v", err)
			}
			if stored, err := stores.Keys(c).List(); err == nil && len(stored) > 0 {
				data.LoggedIn = new(true)
			}
			if !c.Bool("show-config") && !c.Bool("show-side-effects") || c.Bool("show-state-files") {
				data.StateFiles = stateFiles(c)
			}
			if c.Bool("show-side-effects") {
				data.SideEffects = sideEffects(c)
			}
			if c.Bool("show-config") {
				data.Config = c.ShowConfig()
			}
			data.Sessions.Kept = c.Config.Bool(stores.KeepKey)
			if store, err := stores.Sessions(c); err == nil {
				data.Sessions.Path = contract.OrNil(store.Dir())
			}
			return contract.Result{Data: data}, nil
		},
	}
}

// stateFiles returns the directories and files that hold state, with their sizes.
func stateFiles(c *contract.Call) (files []stateFile) {
	for _, place := range []struct{ path, kind string }{
		{c.Paths.State, "state"}, {c.Paths.Data, "log"}, {c.Paths.Cache, "cache"}, {c.TrustFile(), "state"},
	} {
		if place.path == "" {
			continue
		}
		f := stateFile{Path: place.path, Type: place.kind}
		if info, err := os.Lstat(place.path); err == nil {
			f.Exists, f.Bytes = true, info.Size()
			if info.IsDir() {
				f.Bytes, _, _ = workspace.Usage(place.path, workspace.Walk{NoFollow: true})
			}
		}
		files = append(files, f)
	}
	return files
}

// sideEffects returns the files that commands declare to leave, as absolute paths.
func sideEffects(c *contract.Call) (list []sideEffect) {
	for _, command := range c.Program.All() {
		for _, f := range command.Files {
			list = append(list, sideEffect{command.Path, expandPath(c, f.Path), f.Type, f.ClearableWith})
		}
	}
	return append(list, sideEffect{"every command", c.AuditPath(), "log", "omniagent cleanup --scope logs"})
}

// expandPath returns the absolute path in this call for a declared path such as ~/.config/omniagent/keys.json.
func expandPath(c *contract.Call, path string) string {
	for _, known := range []struct{ written, place string }{
		{"~/.config/omniagent", c.Paths.Config},
		{"~/.local/state/omniagent", c.Paths.State},
		{"~/.local/share/omniagent", c.Paths.Data},
		{"~/.cache/omniagent", c.Paths.Cache},
		{"$TMPDIR", c.Paths.Temp},
	} {
		if rest, found := strings.CutPrefix(path, known.written); found && known.place != "" {
			return filepath.Join(known.place, rest)
		}
	}
	if home := c.Host.Home(); home != "" {
		if rest, found := strings.CutPrefix(path, "~/"); found {
			return filepath.Join(home, rest)
		}
	}
	return c.Abs(path)
}
