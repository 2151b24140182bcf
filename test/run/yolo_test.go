//go:build unix

package run

import (
	"path/filepath"
	"testing"
)

// TestYoloGrants: what Claude Code still asks about in the mode in which everything runs is granted. A run that asked
// nobody told that to the agent as a denial.
func TestYoloGrants(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put(filepath.Join(p.bin, "claude"), `#!/usr/bin/env python3
import json, sys
if "--version" in sys.argv:
    print("2.1.329 (Claude Code)"); sys.exit()
def say(**line): print(json.dumps(line), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "control_request" and m["request"]["subtype"] == "initialize":
        say(type="control_response", response={"subtype": "success", "request_id": m["request_id"], "response": {}})
    if m["type"] == "user":
        call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -rf .git"}}
        say(type="system", subtype="init", session_id="x", tools=["Bash"], model="m")
        say(type="assistant", session_id="x", message={"id": "m1", "role": "assistant", "content": [call]})
        say(type="control_request", request_id="r1", request={"subtype": "can_use_tool", "tool_name": "Bash",
            "input": call["input"], "tool_use_id": "t1", "decision_reason": "it removes .git"})
    if m["type"] == "control_response":
        said = m["response"]["response"]["behavior"]
        if said == "allow": open("ran", "w").write(said)
        say(type="user", session_id="x", message={"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": said, "is_error": said != "allow"}]})
        say(type="result", subtype="success", is_error=False, result="done", session_id="x", num_turns=1)
`)
	p.allowed = append(p.allowed, "claude")
	p.configured("").trusting("claude")
	p.run("claude", "--yolo").is(t, 0, "succeeded", "done")
	if p.read("ran") != "allow" {
		t.Errorf("the agent was told %q", p.read("ran"))
	}
	p.run("claude", "--auto-edit").is(t, 4, "needs_input", "question")
}
