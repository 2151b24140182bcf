package command

import (
	"context"
	"os"
	"path/filepath"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

type generatedFile struct {
	Command string `json:"command"`
	Path    string `json:"path"`
}

type skillsData struct {
	Version string          `json:"version"`
	Skills  []generatedFile `json:"skills"`
}

type manData struct {
	Version string          `json:"version"`
	Pages   []generatedFile `json:"pages"`
}

func outputDirParam() contract.Param {
	return contract.Param{
		Name: "output-dir", Kind: contract.File, Position: 1, Required: true,
		Help: "directory to write to; it is made if need be",
	}
}

// generateCommand adds the declarations shared by the commands that write pages.
func generateCommand(c contract.Command) *contract.Command {
	c.Class, c.Danger, c.Version, c.Scopes = contract.Envelope, contract.Mutating, "1.0.0", []string{}
	c.DryRun, c.Reversible = true, true
	c.Exits = []contract.Exit{
		{Code: contract.Success, When: "the files are written"},
		{Code: contract.PreconditionFailed, When: "something other than a regular file has that name"},
		{Code: contract.PermissionDenied, When: "the directory cannot be written"},
	}
	return &c
}

func generateSkills() *contract.Command {
	return generateCommand(contract.Command{
		Path: "generate-skills", Summary: "write a card for agents about every command",
		Output: contract.TypeOf[skillsData](),
		Params: []contract.Param{
			outputDirParam(),
			{
				Name: "format", Kind: contract.Enum, Enum: []string{"markdown", "json"}, Default: "markdown",
				Help: "form of the cards",
			},
		},
		Examples: []contract.Example{{
			Description: "Cards for the agents that work in this repository",
			Command:     "omniagent generate-skills skills",
		}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			pages := c.Program.SkillPages()
			if c.String("format") == "json" {
				pages = c.Program.SkillSchemas()
			}
			files, effect, err := writePages(c, pages)
			return contract.Result{Data: skillsData{c.Program.Version, files}, Effect: effect, Target: targetOf(files)},
				err
		},
	})
}

func generateMan() *contract.Command {
	return generateCommand(contract.Command{
		Path: "generate-man", Summary: "write a manual page for every command", Output: contract.TypeOf[manData](),
		Params: []contract.Param{outputDirParam()},
		Examples: []contract.Example{{
			Description: "Manual pages for a package",
			Command:     "omniagent generate-man man/man1",
		}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			files, effect, err := writePages(c, c.Program.ManPages())
			return contract.Result{Data: manData{c.Program.Version, files}, Effect: effect, Target: targetOf(files)},
				err
		},
	})
}

func targetOf(files []generatedFile) map[string]any {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return map[string]any{"files": paths}
}

// writePages writes the pages whose files differ.
func writePages(c *contract.Call, pages []contract.Page) (files []generatedFile, _ contract.Effect, _ error) {
	dir, effect := c.Path("output-dir"), contract.Noop
	if !c.DryRun() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return files, effect, fault.New(fault.PermissionDenied, "the directory %s cannot be made", dir).
				Because(err).Hint("choose another --output-dir")
		}
	}
	for _, p := range pages {
		path := filepath.Join(dir, p.Name)
		files = append(files, generatedFile{p.Command, path})
		if old, err := workspace.ReadFile(path, 1<<20); err == nil && string(old) == p.Text {
			continue
		}
		effect = contract.Created
		if c.DryRun() {
			continue
		}
		if err := workspace.WriteFile(path, []byte(p.Text), 0o644); err != nil {
			return files, effect, err
		}
	}
	return files, effect, nil
}
