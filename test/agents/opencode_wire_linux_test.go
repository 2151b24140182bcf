package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// opencodeACP: "opencode acp" answers the first request of the protocol.
func opencodeACP(b *bench) {
	cmd := exec.Command(filepath.Join(bin, "opencode"), "acp")
	cmd.Dir, cmd.Env = b.work, append(b.environ(), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		b.t.Fatal("it does not start")
	}
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	_, _ = in.Write(
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}` +
			"\n"))
	line, _ := bufio.NewReader(out).ReadString('\n')
	var answer struct {
		ID     int
		Result struct{ ProtocolVersion int }
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.ID != 1 ||
		answer.Result.ProtocolVersion != 1 {
		b.t.Errorf("%v %s", err, line)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		b.t.Error("at the end of its input:", err)
	}
}

// opencodeLong: no limit is known up to 20 MB, in characters of two bytes; all of it arrives.
func opencodeLong(b *bench) {
	prompt := bytes.Repeat([]byte("é"), 10_000_000)
	o := b.start(prompt, b.script(`[{"say":"it has ${input.length} characters"}]`))
	if o.code != 0 || !strings.Contains(o.stdout, "it has 10000000 characters") {
		b.t.Errorf("%.500s\n%.2000s\n%+v", o.stdout, o.stderr, o.report)
	}
}

// opencodeTooLong: what the model's side refuses is an error, and nothing of it is cut off before. The scripted model
// takes 64 MiB.
func opencodeTooLong(b *bench) {
	prompt := bytes.Repeat([]byte("0123456789abcde\n"), (64<<20)/16)
	o := b.start(prompt, b.script(`[{"say":"it has ${input.length} characters"}]`), "--timeout", "5m")
	if o.code != 1 || strings.Contains(o.stdout, "it has") {
		b.t.Errorf("%.500s\n%.2000s\n%+v", o.stdout, o.stderr, o.report)
	}
	b.t.Logf("%v, %+v", o.took, o.report)
}
