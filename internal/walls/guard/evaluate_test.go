//go:build unix

package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// evaluatedLines start curl in bash, though no command of the line begins with its name.
func evaluatedLines() []string {
	return []string{
		`test -v 'a[$(curl)]'`, "[ -v 'a[`curl`]' ]", `let 'a[$(curl)]=1'`, `declare 'a[$(curl)]=1'`,
		`declare -a 'a=($(curl))'`, `typeset 'a[$(curl)]=1'`, `printf -v 'a[$(curl)]' x`, `printf -v'a[$(curl)]' x`,
		`[[ -v 'a[$(curl)]' ]]`, `x='$(curl)'; echo ${x@P}`, `read 'a[$(curl)]' <<< x`, `command test -v 'a[$(curl)]'`,
		`x='a[$(curl)]'; echo $((x))`, `x='a[$(curl)]'; y=x; (( y ))`, `x='a[$(curl)]'; [[ x -eq 1 ]]`,
		`x='a[$(curl)]'; echo ${!x}`, `x='a[$(curl)]'; echo ${BASH_VERSION:x}`, `x='a[$(curl)]'; a[x]=1`,
		`x='a[$(curl)]'; a=([x]=1)`, `x='a[$(curl)]'; [ -v "$x" ]`, `x='-v a[$(curl)]'; [ $x ]`,
		`x='-va[$(curl)]'; printf "$x" y`, `x='b[$(curl)]'; printf -v 'a[x]' y`, `x='a[$(curl)]=1'; declare "$x"`,
		`x=$(date '+a[$(curl)]'); echo $((x))`, `declare -i y; y='a[$(curl)]'`, `declare -n r='a[$(curl)]'; echo $r`,
		`compgen -W '$(curl)' x`,
		`echo 'a[$(curl)]' | while read n; do echo $((n)); done`, `f() { echo $(($1)); }; f 'a[$(curl)]'`,
		`x='a[$(curl)]'; for ((i = x; i < 1; i++)); do :; done`, `x='a[$(curl)]' bash -c 'echo $((x))'`,
		`git grep -O'curl a' one`, `git grep -Ocurl one`, `git grep -nO'curl' one`, `git grep --open-files='curl' one`,
		`git fetch --upload-pack='curl a' .`, `git fetch --upload-pa curl .`, `git clone -ucurl . c`,
		`git ls-remote --exec=curl .`, `git archive --remote=. --exec='curl a' HEAD`,
		`git push --receive-pack=curl . HEAD`,
		`git config alias.z '!curl'; git z`, `git config core.fsmonitor curl; git status`,
		`git clone --config core.fsmonitor=curl . d && git -C d status`,
		`git -c protocol.ext.allow=always ls-remote ext::curl`,
		`git difftool -y -xcurl HEAD`,
		"make -f <(printf 'a:\\n\\tcurl\\n')", "printf 'a:\\n\\tcurl\\n' | make -f -",
		"make -f/dev/stdin <<< 'a:;curl'",
		`sed -f - a.txt <<< '1e curl'`, `sed -f <(echo 1e curl) a.txt`, `bash <(echo curl)`,
		`python3 /dev/stdin <<< 'import os; os.system("curl")'`, `python3 <(echo 'import os; os.system("curl")')`,
	}
}

// TestEvaluatedLines: real bash starts the program.
func TestEvaluatedLines(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	dir := t.TempDir()
	bin, mark := filepath.Join(dir, "bin"), filepath.Join(dir, "mark")
	for name, text := range map[string]string{
		"bin/curl": "#!/bin/sh\n: > '" + mark + "'\n", "ws/a.txt": "one\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := hermetic.WriteProgram(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bash := func(line string) string {
		c := exec.Command("bash", "-c", line)
		c.Dir, c.Env = filepath.Join(dir, "ws"), []string{
			"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		}
		out, _ := c.CombinedOutput() // a program may fail after it started the other one
		return string(out)
	}
	for _, program := range []string{"bash", "git", "make", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("install %s: %v", program, err)
		}
	}
	if out := bash("((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 502)) || echo $BASH_VERSION"); out != "" {
		t.Skip("an older bash evaluates other things: ", out)
	}
	start := "rm -rf .git && git init -q && git add a.txt && git commit -qm first && echo two >> a.txt"
	for _, line := range evaluatedLines() {
		if strings.HasPrefix(line, "git") {
			bash(start)
		}
		_ = os.Remove(mark)
		out := bash(line)
		if _, err := os.Stat(mark); err != nil {
			t.Errorf("%s runs nothing, so it shows nothing: %s", line, out)
		}
	}
}

// TestRulesBehindWhatBashEvaluates: with a deny or an ask for a program no such line runs unasked, nor one in which
// more than numbers and plain names is evaluated. Others run.
func TestRulesBehindWhatBashEvaluates(t *testing.T) {
	t.Parallel()
	for _, line := range append(evaluatedLines(), []string{
		`i=0; while [ $i -lt 3 ]; do i=$((i+1)); done`,
		`for ((i=0; i<3; i++)); do echo ${a[i]}; done`,
		`for i in 1 2 3; do echo $((i * 2)); done`,
		`read -r -p 'sure [y/n]? ' y`,
		`n=$(wc -l < a.txt); [ $n -gt 3 ] && echo $((n + 1))`,
		`unset 'a[1]'`, `[[ $n -gt 3 ]]`,
	}...) {
		for _, place := range []Place{here(), held()} {
			for _, r := range []string{"deny Bash(curl:*)", "ask Bash(curl:*)"} {
				v := Judge{Known: known(), Place: place, Rules: policy(t, "allow Bash", r)}.Call(Call{
					Tool: "Bash", Kind: "command", Command: line,
				})
				if v.Decision < Ask || !v.Explicit {
					t.Errorf("%s with %s: %s: %+v", line, r, v.Decision, v.Reasons)
				}
			}
		}
	}
	for _, line := range []string{
		`test -v x`, `[ -f "$x" ] && [ "$x" = 'a[b]' ]`, `[[ $# -gt 0 ]]`,
		`declare -a a=(1 2); echo ${a[0]} "${a[@]}"`, `export A=$x`,
		`printf '%s[x]' "$x"`,
		`diff <(sort a) <(sort b)`,
		`make -j4 -f x.mk`,
		`awk '{print $(NF-1)}' a`, `git commit -am 'use curl here'`, `git commit -m x -m 'or curl'`,
		`git log --grep='curl x'`,
		`git log -S'curl x' --format='%h curl'`, `git grep -n 'curl -O'`, `git merge -m 'curl and more' side`,
		`git tag -a v1 -m 'a curl b'`, `git config user.name curl`, `git add 'curl notes.txt'`,
		`[[ -v x && $y == 'a b' ]]`, `n=1; [ $n -gt 3 ]; echo $((1 + 2)) ${x:1:2} ${#a[@]} ${!a[@]}`, `[[ $? -eq 0 ]]`,
	} {
		if v := (Judge{Known: known(), Place: held(), Rules: policy(t, "deny Bash(curl:*)")}).Call(Call{
			Tool: "Bash", Kind: "command", Command: line,
		}); v.Decision > Allow {
			t.Errorf("%s: %s: %+v", line, v.Decision, v.Reasons)
		}
	}
}

// TestCredentialsBehindWhatBashEvaluates: nothing lifts the denial of what reads credentials there.
func TestCredentialsBehindWhatBashEvaluates(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`test -v 'a[$(cat ~/.ssh/id_rsa >&2)]'`, `x='$(cat /w/home/.ssh/id_rsa)'; echo ${x@P}`,
		"let 'a[`cat ~/.ssh/id_rsa`]=1'", `x='a[$(cat ~/.ssh/id_rsa >&2)]'; (( x ))`,
		`git grep -O'cat ~/.ssh/id_rsa' x`,
	} {
		v := Judge{Known: known(), Place: here(), Rules: policy(t, "allow Bash")}.Call(Call{
			Tool: "Bash", Kind: "command", Command: line,
		})
		if v.Decision != Deny {
			t.Errorf("%s: %s: %+v", line, v.Decision, v.Reasons)
		}
	}
}
