//go:build unix

package tool

import (
	"strings"
	"testing"
)

// TestTaskOutput: a background command is read with its state; without an id the newest one, and without block at once.
func TestTaskOutput(t *testing.T) {
	t.Parallel()
	d := withShell(t)
	if r := d.call(TaskOutput, `{}`); !r.Failed {
		t.Errorf("without a task: %s", r.Text)
	}
	d.call(Bash, `{"command": "echo first; exit 3", "run_in_background": true}`)
	d.call(Bash, `{"command": "echo begun; read -r line <wait; echo $line", "run_in_background": true}`)
	want := "<retrieval_status>success</retrieval_status>\n<task_id>bash_1</task_id>\n" +
		"<task_type>local_bash</task_type>\n<status>failed</status>\n<exit_code>3</exit_code>\n" +
		"<output>\nfirst\n</output>"
	if r := d.call(TaskOutput, `{"task_id": "bash_1"}`); r.Text != want || r.Waits {
		t.Errorf("got %s", r.Text)
	}
	if r := d.call(TaskOutput, `{"task_id": "bash_7"}`); !r.Failed || !strings.Contains(r.Text, "bash_2") {
		t.Errorf("another: %s", r.Text)
	}
	d.call(Bash, `{"command": "sleep 1000", "run_in_background": true}`)
	if r := d.call(TaskOutput, `{"block": false}`); !strings.Contains(r.Text, "<status>running</status>") || !r.Waits ||
		!strings.Contains(r.Text, "<task_id>bash_3</task_id>") || !strings.Contains(r.Text, "not_ready") {
		t.Errorf("the newest: %s", r.Text)
	}
	if r := d.call(TaskOutput, `{"timeout": 50}`); !strings.Contains(r.Text, "<retrieval_status>timeout") {
		t.Errorf("it waits for ever: %s", r.Text)
	}
	d.call(KillShell, `{"shell_id": "bash_3"}`)
	if r := d.call(TaskOutput, `{"task_id": "bash_3"}`); !strings.Contains(r.Text, "<status>killed</status>") {
		t.Errorf("ended: %s", r.Text)
	}
}
