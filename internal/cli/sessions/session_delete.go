package sessions

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/talk/session"
)

type sessionDeleted struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes_freed"`
}

func sessionDelete() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session delete", Summary: "delete one conversation for ever", Danger: contract.Destructive, DryRun: true,
		Output: contract.TypeOf[sessionDeleted](), Params: []contract.Param{sessionParam()},
		Files: []contract.FileEffect{
			{Path: "~/.yume/sessions", Type: "state"}, {Path: "~/.eidolon/projects", Type: "state"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is deleted"},
			{Code: contract.Conflict, When: "a process has it open"},
		},
		Examples: []contract.Example{{
			Description: "One of them",
			Command:     "omniagent session delete sess-1a2b3c4d --confirm-destructive",
		}},
		Run: contract.WithStore(stores.Sessions, func(
			ctx context.Context, c *contract.Call, store session.Store,
		) (contract.Result, error) {
			d := sessionDeleted{ID: c.String("id")}
			files, err := store.Files(d.ID)
			if err != nil {
				return contract.Result{}, err
			}
			record := chatRecord(c, store, d.ID)
			var names []string
			for _, f := range append(files, record...) {
				names = append(names, f.Path)
				d.Bytes += f.Size
			}
			if !c.DryRun() {
				if err := store.Delete(ctx, d.ID); err != nil {
					return contract.Result{}, err
				}
				for _, f := range record {
					if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
						return contract.Result{}, fault.New(fault.PermissionDenied, "%s cannot be deleted", f.Path).
							Because(err)
					}
				}
				if len(record) > 0 {
					_ = os.Remove(filepath.Dir(record[0].Path)) // the directory stays if something else is in it
				}
			}
			return contract.Result{
				Data: d, Effect: contract.Deleted,
				Target: map[string]any{"session": d.ID, "files": names, "bytes": d.Bytes},
			}, nil
		}),
	})
}

// chatRecord returns the files below ~/.eidolon in which a chat recorded a conversation.
func chatRecord(c *contract.Call, store session.Store, id string) (files []session.File) {
	home := c.Host.Home()
	info, err := store.Info(id)
	if home == "" || err != nil {
		return nil
	}
	dir := eidolon.ConversationDir(home, info.Begin.Cwd, id)
	for _, name := range eidolon.RecordFiles() {
		if f, err := os.Lstat(filepath.Join(dir, name)); err == nil && f.Mode().IsRegular() {
			files = append(files, session.File{Path: filepath.Join(dir, name), Size: f.Size()})
		}
	}
	return files
}
