package agents

import (
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// strict is tried on every agent: an approval that is stricter than prompt holds, or is refused before anything runs.
func strict() scenario {
	return scenario{
		"strict approvals",
		[]string{"approval=deny *", "approval=ask *", "approval=plan *", "approval=default *"},
		strictApprovals,
	}
}

func strictApprovals(b *bench) {
	i := slices.IndexFunc(subjects(), func(s subject) bool { return s.driver.Name() == b.agent })
	matrix := subjects()[i].driver.Matrix("")
	for _, a := range []setting.Approval{setting.DenyAll, setting.AskAll, setting.Plan} {
		b.strictOneShot(a, matrix.Cell(agent.Approval, string(a), setting.OneShot))
		b.strictHost(a, matrix.Cell(agent.Approval, string(a), setting.OneShot))
		b.strictScreen(a, matrix.Cell(agent.Approval, string(a), setting.Interactive))
	}
	const script = `[{"shell":"touch inside.txt"},{"write":{"path":"written.txt","content":"x"}},{"say":"ok"}]`
	took := func(word string) [3]any {
		return [3]any{b.run(script, "--approval", word).code, b.took("inside.txt"), b.took("written.txt")}
	}
	if prompt, byDefault := took("prompt"), took("default"); prompt != byDefault {
		b.t.Errorf("default: %v, and with prompt %v", byDefault, prompt)
	}
	s := b.sit(program, "--agent", b.agent, "--trace-translate=only", "--rehearse", "--approval", "default")
	if code := s.left(); code != 0 {
		b.t.Errorf("default on a screen: exit %d: %s", code, tail(s.letters()))
	}
}

// strictOneShot lets the model try everything. What deny and ask let it read, it would repeat.
func (b *bench) strictOneShot(a setting.Approval, cell agent.Cell) {
	b.t.Helper()
	b.put("note.txt", "words of the note\n")
	changes := b.run(`[{"shell":"touch inside.txt"},{"say":"ok"}]`, "--approval", string(a))
	writes := b.run(`[{"write":{"path":"written.txt","content":"x"}},{"say":"ok"}]`, "--approval", string(a))
	reads := b.run(`[{"read":"note.txt"},{"say":"it says ${result}"}]`, "--approval", string(a))
	if b.took("inside.txt") || b.took("written.txt") {
		b.t.Errorf("%s: something was changed:\n%+v\n%+v", a, changes, writes)
	}
	read := strings.Contains(reads.stdout, "words of the note")
	switch {
	case cell.Level == agent.None:
		if reads.code != 2 || !strings.Contains(reads.stderr, b.agent+" cannot hold --approval "+string(a)) {
			b.t.Errorf("%s is not refused: %+v", a, reads)
		}
	case read != (a == setting.Plan):
		b.t.Errorf("%s: it reads: %v: %+v", a, read, reads)
	}
}

// strictHost has a host begin a conversation in which nobody can be asked.
func (b *bench) strictHost(a setting.Approval, cell agent.Cell) {
	b.t.Helper()
	const script = `[{"write":{"path":"written.txt","content":"x"}},{"shell":"touch inside.txt"},{"say":"ok"}]`
	d := b.runs(scripted(b.t, script), "start", "--agent", b.agent, "--approval", string(a), "--questions", "none",
		"-p", "go")
	code := d.ends()
	if b.took("inside.txt") || b.took("written.txt") {
		b.t.Errorf("%s behind a host: something was changed: %s", a, d.errors.String())
	}
	if refused := strings.Contains(d.errors.String(), "mode "+string(a)); code == 2 != (cell.Level == agent.None) ||
		code == 2 && !refused {
		b.t.Errorf("%s behind a host: exit %d: %s", a, code, d.errors.String())
	}
}

// strictScreen looks at what a session in a terminal would be started with: what that does was seen without one.
func (b *bench) strictScreen(a setting.Approval, cell agent.Cell) {
	b.t.Helper()
	s := b.sit(program, "--agent", b.agent, "--trace-translate=only", "--rehearse", "--approval", string(a))
	if cell.Level == agent.None {
		s.sees(b.agent + " cannot hold --approval " + string(a))
		if code := s.left(); code != 2 {
			b.t.Errorf("%s on a screen: exit %d", a, code)
		}
		return
	}
	s.sees("OA_TRANSLATION")
	if code := s.left(); code != 0 {
		b.t.Errorf("%s on a screen: exit %d: %s", a, code, tail(s.letters()))
	}
	for _, arg := range cell.Args {
		if !strings.Contains(s.letters(), letters(strings.ReplaceAll(arg, `"`, `\"`))) {
			b.t.Errorf("%s on a screen: %q is not sent: %s", a, arg, tail(s.letters()))
		}
	}
}
