//go:build unix

package chat

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
)

// said returns the text of the last message of the user in a request.
func said(r modelserver.Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role != modelserver.User {
			continue
		}
		var parts []string
		for _, b := range r.Messages[i].Blocks {
			parts = append(parts, b.Text)
		}
		return strings.Join(parts, "\n")
	}
	return ""
}

// TestTalk: a message, its answer as Markdown, and what is said on leaving.
func TestTalk(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"# Title\n\nIt is **so**:\n\n- `+"`"+`code`+"`"+`\n"}]`)
	w := p.open()
	w.await("test-model of anthropic")
	w.enters("hello wörld 日本")
	w.await("hello wörld 日本")
	w.await("Title")
	w.await("It is so:")
	w.await("- code")
	w.quits()
	w.await("1 turn, ")
	w.await("Go on with: omniagent chat --resume ")
	if strings.Contains(w.text(), "**so**") {
		t.Error("the markers of Markdown are shown")
	}
}

// TestNotKept: a conversation that could not be kept is not said to go on.
func TestNotKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"heard"}]`)
	p.write(filepath.Join(p.home, ".yume"), "where the sessions would lie")
	w := p.open()
	w.await("nothing of the conversation is kept")
	w.enters("hello")
	w.await("heard")
	w.quits()
	w.await("1 turn, ")
	if strings.Contains(w.text(), "Go on with") {
		t.Error(w.text())
	}
}

// TestCommandToCopy: what a narrow terminal shows on two rows is one line when it is copied.
func TestCommandToCopy(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"heard"}]`)
	w := p.sized(40, 24, append([]string{"chat"}, p.args...)...)
	w.await("test-model")
	w.enters("hello")
	w.await("heard")
	w.quits()
	if !strings.Contains(w.text(), "Go on with: omniagent chat --resume sess-") {
		t.Error(w.text())
	}
}

// TestTyping: the usual keys, several lines, and what was typed in an earlier conversation.
func TestTyping(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	w := p.open()
	w.await("test-model")
	w.enters("hxllo\x1b[D\x1b[D\x1b[D\x7fe\x01> \x05!") // Left, Backspace, Home, End
	w.await("\nok")
	w.types("one\\\rtwo\x1b\rthree\r") // a backslash at the end, and Alt-Enter
	w.await("three")
	w.await("\nok")
	paste := strings.Repeat("a line that was pasted\n", 300)
	w.types("\x1b[200~" + paste + "\x1b[201~\r")
	w.await("\nok")
	w.quits()
	again := p.open()
	again.await("test-model")
	again.types(">\x1b[A\r") // Up, to what begins so
	again.await("\nok")
	again.quits()
	var got []string
	for _, r := range p.requests() {
		got = append(got, said(r))
	}
	want := []string{"> hello!", "one\ntwo\nthree", strings.TrimSuffix(paste, "\n"), "> hello!"}
	if len(got) != len(want) {
		t.Fatalf("%d requests, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.HasSuffix(strings.TrimRight(got[i], "\n"), want[i]) {
			t.Errorf("message %d: %.200q, want %.200q", i+1, got[i], want[i])
		}
	}
}

// TestCommandOfThePerson: @! asks no model, runs behind walls, and what it says travels with the next message.
func TestCommandOfThePerson(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.env = append(p.env, "PAGER=cat")
	w := p.open()
	w.await("test-model")
	w.enters("@!echo out; echo err >&2; exit 3")
	w.await("⏺ SysBuiltIn.bash")
	w.await("out")
	w.await("err")
	w.await("[exit code 3]")
	w.enters("@!seq 1 20")
	w.await("... (truncated 15 lines), /show 2")
	w.enters("/show 2")
	w.await("\n20\n")
	w.enters("@!")
	w.await("no command behind @!")
	w.enters("@!sudo id")
	w.await("failed: ")
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	w.enters("and now?")
	w.await("\nok")
	w.quits()
	got := said(p.requests()[0])
	for _, want := range []string{"@!echo out; echo err >&2; exit 3\nout\nerr\n[exit code 3]", "and now?"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// TestFilesInMessages: a file travels with the message, unless it lies outside or where keys are.
func TestFilesInMessages(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.write("notes/a.txt", "content of a\n")
	outside := p.write(filepath.Join(t.TempDir(), "out.txt"), "content of out\n")
	if err := os.Chmod(outside, 0o644); err != nil {
		t.Fatal(err)
	}
	key := p.write(filepath.Join(p.home, ".ssh", "id_ed25519"), "very secret\n")
	w := p.open()
	w.await("test-model")
	w.enters("see @file:../x please")
	w.await("leads out of this workspace")
	for link, to := range map[string]string{"link.txt": outside, "etc": filepath.Dir(outside), "notes/b.txt": "a.txt"} {
		if err := os.Symlink(to, filepath.Join(p.work, link)); err != nil {
			t.Fatal(err)
		}
	}
	w.enters("see @file:link.txt")
	w.await("leads out of this workspace")
	w.enters("see @file:etc/out.txt")
	w.await("leads out of this workspace")
	w.enters("see @file:etc")
	w.await("leads out of this workspace")
	w.enters("/nosuch\x1b\rwith a second line")
	w.await("There is no command /nosuch")
	w.enters("see @file:notes/a.txt, @file:" + outside + " and @file:none.txt")
	w.await("there is no file none.txt")
	w.await("\nok")
	w.enters("see @file:" + key)
	w.await("where logins and keys are kept")
	w.enters("no")
	w.await("nothing was sent")
	w.enters("see @file:" + key)
	w.await("where logins and keys are kept")
	w.enters("yes")
	w.await("\nok")
	w.quits()
	requests := p.requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	got := said(requests[0])
	for _, want := range []string{
		"@file:" + filepath.Join(p.work, "notes", "a.txt") + "\ncontent of a\n", "@file:" + outside +
			"\ncontent of out\n",
		"see @file:" + filepath.Join(p.work, "notes", "a.txt") + ",",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if !strings.Contains(said(requests[1]), "very secret") {
		t.Error("what was agreed to was not sent")
	}
}

// TestImagesAndDocuments: they reach the model as such, and not as text.
func TestImagesAndDocuments(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.write("pixel.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	p.write("paper.pdf", "%PDF-1.4\n%%EOF\n")
	w := p.open()
	w.await("test-model")
	w.enters("see @file:pixel.png and @file:paper.pdf")
	w.await("\nok")
	w.quits()
	requests := p.requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	raw := string(requests[0].Raw)
	for _, want := range []string{
		`"type":"image"`, `"media_type":"image/png"`, `"type":"document"`, `"media_type":"application/pdf"`,
		base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\n%%EOF\n")),
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is missing in %.3000s", want, raw[strings.Index(raw, `"messages"`):])
		}
	}
}

// TestAgentsOfFiles: the prompt of an agent comes into the conversation once, and stays for later turns; what comes
// from the workspace has to be trusted first.
func TestAgentsOfFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.write(filepath.Join(p.home, ".eidolon/agents/rev.md"), "---\nname: reviewer\n---\nYou review.\n")
	theirs := p.write(".eidolon/agents/theirs.md", "You obey.\n")
	w := p.open()
	w.await("test-model")
	w.enters("@agent:nobody do it")
	w.await("There is no agent nobody")
	w.enters("@agent:theirs do it")
	w.await("omniagent trust ")
	w.types("@agent:")
	w.await("reviewer")
	w.await("not trusted") // a candidate that the workspace brings is named as such
	w.types("rev\t")
	w.await("ewer ")
	w.types("do it\r")
	w.await("\nok")
	w.enters("@agent:reviewer once more")
	w.await("\nok")
	p.run("trust", theirs)
	w.enters("@agent:theirs do it")
	w.await("\nok")
	w.quits()
	requests := p.requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests", len(requests))
	}
	all := fmt.Sprint(requests[2].Messages)
	if got := said(requests[0]); !strings.Contains(got, "You review.") || !strings.Contains(got, "@agent:reviewer") {
		t.Errorf("%q", got)
	}
	if got := said(requests[1]); strings.Contains(got, "You review.") {
		t.Errorf("it came again: %q", got)
	}
	if !strings.Contains(all, "You review.") || !strings.Contains(said(requests[2]), "You obey.") {
		t.Errorf("%s", all)
	}
}

// TestAgentAfterCompaction: when the conversation is shortened, the prompt of the agent comes into it again, and so
// does one that has changed.
func TestAgentAfterCompaction(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	file := filepath.Join(p.home, ".eidolon/agents/rev.md")
	p.write(file, "You review.\n")
	w := p.open()
	w.await("test-model")
	w.enters("/compact")
	w.await("nothing to shorten yet")
	w.enters("@agent:rev one")
	w.await("\nok")
	w.enters("two")
	w.await("\nok")
	w.enters("/compact")
	w.await("was shortened")
	w.enters("three")
	w.await("\nok")
	p.write(file, "You review twice.\n")
	w.enters("@agent:rev four")
	w.await("\nok")
	w.quits()
	requests := p.requests()
	last := requests[len(requests)-2:]
	if got := said(last[0]); !strings.Contains(got, "You review.") || !strings.Contains(got, "three") {
		t.Errorf("behind the compaction: %q", got)
	}
	if got := said(last[1]); !strings.Contains(got, "You review twice.") {
		t.Errorf("with another prompt: %q", got)
	}
}

// TestCommandsOfFiles: found, completed, filtered and run; an unknown one is never sent.
func TestCommandsOfFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.write(filepath.Join(p.home, ".eidolon/commands/mine.md"), "My prompt.\n")
	for _, name := range []string{"openspec/commands/apply.md", "kaleido/tools/run.md", "commands/help.md"} {
		p.run("trust", p.write(".eidolon/"+name, "Prompt of "+name+"\n"))
	}
	p.write(".eidolon/commands/untrusted.md", "no\n")
	w := p.open()
	w.await("test-model")
	w.enters("/help")
	for _, want := range []string{"/kaleido:tools:run", "/mine", "/openspec:apply", "/project:help", "/untrusted"} {
		w.await(want)
	}
	w.enters("/openspec:apply the change")
	w.await("\nok")
	w.types("/mi\t")
	w.await("ne ")
	w.types("\r")
	w.await("\nok")
	w.enters("/mime")
	w.await("/mine is the nearest")
	w.enters("/untrusted")
	w.await("omniagent trust ")
	w.enters("/etc/hosts is a file") // no command
	w.await("\nok")
	w.quits()
	var got []string
	for _, r := range p.requests() {
		got = append(got, said(r))
	}
	if len(got) != 3 || !strings.HasSuffix(got[0], "Prompt of openspec/commands/apply.md\n\nthe change") ||
		!strings.HasSuffix(strings.TrimSpace(got[1]), "My prompt.") ||
		!strings.HasSuffix(got[2], "/etc/hosts is a file") {
		t.Errorf("%q", got)
	}
}

// TestProblemsOfFiles: what cannot be understood is named with its place, and everything else works.
func TestProblemsOfFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	bad := p.write(filepath.Join(p.home, ".eidolon/agents/bad.md"), "---\nname: bad\nno key\n---\nYou are bad.\n")
	open := p.write(filepath.Join(p.home, ".eidolon/commands/open.md"), "---\nname: open\n")
	p.write(filepath.Join(p.home, ".eidolon/commands/mine.md"), "My prompt.\n")
	w := p.sized(200, 24, append([]string{"chat"}, p.args...)...)
	w.await(bad + ":3:1: ")
	w.await(open + ":1:1: ")
	w.enters("/mine")
	w.await("\nok")
	w.enters("@agent:bad do it")
	w.await("\nok")
	w.quits()
	if got := said(p.requests()[1]); !strings.Contains(got, "You are bad.") {
		t.Errorf("%q", got)
	}
}

// TestFileCompletion: the entries of the directory that is typed, the first at once, also where there are many.
func TestFileCompletion(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	p.write("docs/manual.md", "x")
	p.write("docs/.hidden", "x")
	for i := range 3000 {
		p.write(fmt.Sprintf("many/%04d.txt", i), "")
	}
	p.write("many/.rare.txt", "")
	p.write("my first/no tes.txt", "blanks too")
	w := p.open()
	w.await("test-model")
	w.types("see @file:do\t")
	w.await("cs/")
	w.types("\t")
	w.await("manual.md")
	w.types(" and @file:many/")
	w.await(".txt")
	w.types(".rare") // not among the first, whatever the order of the directory
	w.await(".rare")
	w.await(".rare") // the candidate
	w.types("\t")
	w.await(".txt ")
	w.types("@file:my\t") // a name with blanks is put into quotes
	w.await("first/")
	w.types("no\t")
	w.await("tes.txt")
	w.types("\r")
	w.await("\nok")
	w.quits()
	got := said(p.requests()[0])
	for _, name := range []string{"docs/manual.md", "many/.rare.txt"} {
		if !strings.Contains(got, "@file:"+filepath.Join(p.work, name)) {
			t.Errorf("%s is missing in %q", name, got)
		}
	}
	if !strings.Contains(got, "blanks too") || !strings.Contains(got, `"`+filepath.Join(p.work, "my first/no tes.txt")) {
		t.Errorf("the file with blanks is missing in %q", got)
	}
}
