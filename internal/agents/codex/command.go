package codex

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// Command translates the flags. exec reads the prompt from standard input unless it is an argument.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	p := readPassed(s.Passthrough)
	m := d.Matrix(s.Install.Version)
	fit(m, s, p)
	t, err := cli.Translate(m, sentFlags(s, p))
	if err != nil {
		return agent.Launch{}, nil, err
	}
	overridden(&t, s, p)

	native := s.Mode == setting.OneShot && s.Schema != nil && !p.has("--output-schema")
	if native {
		file := agent.File{Path: filepath.Join(s.Temp, "schema.json"), Data: s.Schema}
		t.Files = append(t.Files, file)
		t.Args = append(t.Args, "--output-schema", file.Path)
	}
	if s.Rehearsal != nil {
		rehearse(&t, s, p)
	}
	if s.Terms.Once {
		// A run checks the directory itself, and has nobody to warn.
		t.Args = append(t.Args, "--skip-git-repo-check")
		s.Install.Path = cmp.Or(s.Install.Program, s.Install.Path)
		if s.Install.Program != "" {
			t.Env, t.Unset = append(t.Env, managed(s.Install)...), append(t.Unset, managers()...)
		}
	}
	session, resumes := p.session()
	switch { // the subcommand comes last: exec takes --sandbox only before it
	case resumes:
	case s.Resume != "":
		t.Args = append(t.Args, "resume", s.Resume)
		if cli.IsUUID(s.Resume) { // otherwise it is the name of a session
			session = s.Resume
		}
	case s.Newest:
		t.Args = append(t.Args, "resume", "--last")
	}
	l := d.Launch(s, t)
	l.Native, l.Session = native, session
	l.Refusals = refusals(l, p)
	return l, t.Warnings, nil
}

// fit changes the cells that depend on this call. In Codex the approval depends on the sandbox: it asks or refuses only
// if the sandbox stops a command. With plan, which is itself a sandbox, no other sandbox is sent.
func fit(m agent.Matrix, s agent.Spec, p passed) {
	approval, sandbox := s.Shared.Approval.Value, s.Shared.Sandbox.Value
	for i, row := range m.Rows {
		cell := &m.Rows[i].Interactive
		if s.Mode == setting.OneShot {
			cell = &m.Rows[i].OneShot
		}
		switch {
		case row.Feature == agent.Sandbox && row.Value == string(sandbox) && approval == setting.Plan:
			*cell = agent.Cell{Level: agent.Full, Note: planned}
			if sandbox == setting.Off {
				cell.Level = agent.Nearest
			}
		case row.Feature == agent.Sandbox && row.Value == string(sandbox):
			cell.Note = ""
			if sandbox == setting.WorkspaceWrite && s.Machine.OS == "windows" {
				cell.Level, cell.Note = agent.Nearest, "codex's sandbox for Windows was not measured"
			}
		case row.Feature != agent.Approval || row.Value != string(approval):
		case approval == setting.Prompt && sandbox == setting.WorkspaceWrite && !p.overrules(s):
			cell.Note = unasked
		case approval == setting.Prompt: // another sandbox decides: see overridden
			cell.Level, cell.Note = agent.Full, ""
		case sandbox == setting.Off && approval == setting.Yolo:
			cell.Note = ""
		}
	}
}

// sentFlags returns the flags to send. Codex refuses two flags for one setting, so if the passthrough has the same
// flag, one that was configured but not typed is sent in the form that the passthrough overrides.
func sentFlags(s agent.Spec, p passed) agent.Spec {
	if p.sandbox() && !s.Shared.Sandbox.Typed() {
		s.Shared.Sandbox.Origin = setting.Unchosen
	}
	if p.approval() && !s.Shared.Approval.Typed() {
		s.Shared.Approval.Origin = setting.Unchosen
	}
	if p.model() && !s.Shared.Model.Typed() {
		s.Shared.Model.Value = ""
	}
	if p.has("--json") && !s.Shared.Output.Typed() {
		s.Shared.Output.Value = setting.Text
	}
	return s
}

// overridden corrects the policies that depend on several flags, and warns if nothing restricts the agent.
func overridden(t *cli.Translation, s agent.Spec, p passed) {
	const elsewhere = "what follows -- decides"
	loose := s.Shared.Approval.Value != setting.Yolo && s.Shared.Approval.Value != setting.Plan &&
		s.Shared.Sandbox.Value == setting.Off && !p.overrules(s)
	for i := range t.Policies {
		policy := &t.Policies[i]
		switch policy.Feature {
		case agent.Approval:
			policy.Origin = s.Shared.Approval.Origin.String()
			switch {
			case p.approval() || p.overrules(s):
				policy.Enforced, policy.Note = agent.None, elsewhere
			case loose:
				policy.Enforced, policy.Note = agent.None, "without a sandbox codex asks for nothing"
			}
		case agent.Sandbox:
			policy.Origin = s.Shared.Sandbox.Origin.String()
			if p.overrules(s) {
				policy.Enforced, policy.Note = agent.None, elsewhere
			}
		case agent.Web:
			if p.web() {
				policy.Enforced, policy.Note = agent.None, elsewhere
			}
		}
	}
	if loose {
		t.Warnings = append(t.Warnings, agent.Warning{
			Flag: "--approval", Value: string(s.Shared.Approval.Value), Kind: agent.Unguarded,
			Message: "without a sandbox codex does everything without asking",
		})
	}
}
