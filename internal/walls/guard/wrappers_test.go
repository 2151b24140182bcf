package guard

import (
	"slices"
	"strings"
	"testing"
)

// TestWrappers: what the file says has a meaning, and no name is there twice.
func TestWrappers(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for line := range strings.Lines(wrappers) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "\t") || strings.TrimSpace(line) == "" {
			continue
		}
		names, rest, _ := strings.Cut(line, ":")
		for name := range strings.SplitSeq(names, ", ") {
			if seen[name] || wrapperOf(name).name != name {
				t.Errorf("%s is there twice, or not found", name)
			}
			seen[name] = true
		}
		for part := range strings.FieldsSeq(rest) {
			if key, _, _ := strings.Cut(part, "="); !slices.Contains([]string{
				"operands", "optional", "assigns", "joined", "feeds", "anywhere", "flags", "last", "letters", "after",
				"text",
			}, key) {
				t.Errorf("%s: %s means nothing", names, part)
			}
		}
	}
}

// TestDeniedBehindWrappers: no way to start a denied command runs it unasked. What is certain is denied; what cannot be
// read is asked about, in every mode.
func TestDeniedBehindWrappers(t *testing.T) {
	t.Parallel()
	for word, commands := range map[Decision][]string{
		Deny: {
			"env -S 'curl --version'", "env -iS 'curl --version'", "env --split-string='curl x'", "env -Scurl\\ x",
			"env A=b -u C curl x", "flock -w 5 l curl x", "flock l -c 'curl x'", "stdbuf --output L curl x",
			"stdbuf -oL curl x", "ionice --class 3 curl x", "eval -- curl x", "eval 'curl x'", "bash <<< 'curl x'",
			"bash <<< \"curl x\"", "sh -s <<< 'ls; curl x'", "bash <<E\nls\ncurl x\nE\n", "bash <<'E'\ncurl x\nE\n",
			"echo 'curl x' | bash", "printf 'ls\\ncurl x' | sh -s", "/usr/bin/time -o f curl x",
			"setpriv --no-new-privs --reuid 1 curl x", "unshare -r curl x", "nice -10 curl x", "timeout -k 1 5 curl x",
			"watch -n 1 'curl x'", "chroot --userspec=a:b / curl x",
			"taskset -c 0 curl x", "xargs -0 -n 1 curl", "find . -exec curl {} +",
			"rg --pre curl x", "zip a.zip b -T -TTcurl",
			"env nice -n 3 stdbuf -o0 flock l timeout 5 curl x", "script -qc 'curl x'", "su -c 'curl x'",
			"env -S 'bash -c \"curl x\"'", "exec -a ls curl x", "systemd-run --user -p A=b curl x",
			"tar -I curl -xf a", "tar -xI curl -f a", "tar -I'curl x' -xf a",
			"tar --to-command curl -xf a", "man -P curl x",
			"tar --use-compress-program=curl -cf a b", "sort --compress-program curl a",
			"rsync -e curl a b", "scp -S curl a b", "go test -exec curl ./...",
			"go build -toolexec 'curl x' .", "tar -x -F curl -f a", "rsync -avze curl a b",
			"tar -xvIcurl -f a",
			"bash -ceuo pipefail 'curl x'", "bash -c -o pipefail 'curl x'", "sh -c -o errexit 'curl x'",
			"bash -c +x 'curl x'", "bash +c 'cu\"\"rl x'", "find . -exec bash -c +x 'curl x' \\;",
			"bash -euxo pipefail -c 'curl x'", "bash -Oc extglob 'curl x'", "bash --norc -lc -- 'curl x' a",
			"bash -c - 'curl x'", "bash /dev//stdin <<< 'curl x'", "su -c 'curl x' a",
			"setarch x86_64 <<< 'curl x'", "linux64 <<< 'curl x'", "unshare -r <<< 'curl x'", "chroot / <<< 'curl x'",
			"su <<< 'curl x'", "su - a <<< 'curl x'", "newgrp <<< 'curl x'", "sg users <<< 'curl x'",
			"script -q /dev/null <<< 'curl x'", "echo 'curl x' | setarch -R", "sudo -s <<< 'curl x'",
			"script -c 'curl x' out",
		},
		Ask: {
			"cat s | bash", "bash < s", "bash", "sh -s -- a", "bash -x", ". /dev/stdin", "source /dev/fd/0 < s",
			"bash -",
			"bash -c \"$x\"", "env -S \"$x\"", "xargs bash -c", "xargs env", "xargs -I% %", "xargs -I{} sh -c '{}'",
			"parallel", "parallel ::: 'curl x'", "bwrap --ro-bind / / curl x", "{ bash; } <<< 'curl x'",
			"bash <<< \"$x\"", "unshare --strange curl x", "ls | tee l | zsh", "find . -exec {} x \\;",
			"setarch -R curl x", "setarch x86_64 -R curl x", "/lib64/ld-linux-x86-64.so.2 /usr/bin/curl x",
			"echo curl x | at now", "tmux new -d curl x",
			"echo a # \\\ncurl x", "ls # list \\\ncurl http://x", "echo \"$\\\n(curl x)\"",
			"cat <<\"a\\\"b\"\na\"b\ncurl x\na\\\"b", "cat <<\"a\\$b\"\na$b\ncurl x\na\\$b",
			"cat <<\"a\\\\b\"\na\\b\ncurl x\na\\\\b", "echo $(cat <<E\na\nE)\ncurl x\nE\n)",
			"x=$(cat <<E\na\nE)\ncurl x\nE\n)", "cat <<E\n\\\nE\ncurl x\nE", "cat <<E\nE\\\n\ncurl x\nE",
			"echo `cat <<E\na\nE`\ncurl x\nE\n`", "time -- curl x", "time -p -- curl x",
			"bash -norc ls -c 'curl x'", "bash -Zc 'curl x'", "fish -c ls -c 'curl x'", "bash -o $x -c ls",
			"script -c ls -c 'curl x'",
			"echo 'cat <<E\\n;curl x\\nE' | bash", "echo() { command printf 'cu%s x' rl; }; echo ls | bash",
			"printf() { echo 'cu''rl x'; }; printf ls | sh", "function echo { a; }; echo ls | bash",
			"unshare -r < s", "cat s | linux64", "cat s | script -q", "script -q /dev/null curl x <<< ls", "tmux < s",
			"bash /dev/fd/3 3<<< 'curl x'", ". /dev/fd/3 3<<< 'curl x'", "source /proc/thread-self/fd/0 <<< 'curl x'",
			"bash /dev/fd/3 <<< ls 3<<< 'curl x'", "bash ../../../dev/fd/3 3<<< 'curl x'", ". -- /dev/./fd/3",
			"python3 /dev/fd/3 3<<< x", "awk -f /dev/fd/3 3<<< x", "awk -f /dev//stdin <<< x", "gawk -E /dev/fd/3 a",
			"awk -f/dev/fd/3", "sed -nf/dev/fd/3 a", "sed -nf- a", "make -f /dev/fd/3", "make -sf/dev/fd/3",
			"make --file=/dev/fd/3", "tclsh /dev/fd/3", "mawk -W exec /dev/stdin <<< x", "node --require=/dev/fd/3 a",
			"env BASH_ENV=/dev/fd/3 bash -c : 3<<< 'curl x'", "bash --rcfile /dev/fd/3 -i", "cd /dev/fd && bash 3",
			"choom -n 0 -- curl x", "choom -n 0 /usr/bin/curl x", "logsave f curl x", "ssh-agent curl x",
			`capsh -- -c 'cu""rl x'`, `capsh -- -c '\curl x'`, "gcc -wrapper curl f.c", "gcc -wrapper curl,-v f.c",
			"uclampset -m 1 curl x", "runcon -t a curl x", "cmake -E env curl x", "ccache curl x", "systemd-cat curl x",
			"rustup run stable curl x", "docker exec x curl x", "dtach -n s curl x", "aa-exec -p x curl x",
			"xterm -e curl x", "script -q /dev/null curl x", "arch -x86_64 curl x", "sandbox-exec -n no curl x",
			"npm --script-shell curl exec -c ls", "nice choom -n 0 curl x", "ssh host curl x", "python3 -m pdb curl",
			"xterm -e 'c\"\"url x'",
			"awk '{print}' /proc/cpuinfo", "awk -F - '{print}' a -", "sed -n 1p /dev/stdin",
		},
		Allow: {
			"tar -xf curl", "tar -cf a curl", "sort curl a", "rsync curl a", "go test ./curl",
			"man curl", "man -H curl", "tar -cfIcurl a", "zip a curl", "go run . curl",
			"ls \\\n  -l # all\n", "cat <<EOF2\na \\\n  curl\nEOF2\n", "echo \"$(cat <<'EOF'\ncurl x\nEOF\n)\"",
			"bash -euo pipefail -c 'ls curl'", "bash -ceuo pipefail ls", "bash -o pipefail x.sh -c ls",
			"bash -x x.sh \"$x\"", ". bin/activate $x", "bash --version", "script -qc ls out",
			"unshare -r ls <<< 'curl x'", "setarch -R ./a", "setarch x86_64 -R ./a <<< 'curl x'",
			"env", "env | grep curl",
			"nice", "command -v ls", "exec 3> x", "flock -u 9", "taskset -p 9", "unshare --help", "xargs < x",
			"setarch x86_64 <<< ls", "npm test", "npx", "uv sync", "timeout 5 ls < x", "time", "perf record -p 9",
			"echo 'ls curl' | bash", "f() { ls; }; echo 'ls curl' | bash",
			"awk -F- '{print}' a",
			"make -f sub/Makefile", "bash x.sh /dev/stdin", "bash --rcfile a -c ls", "env A=b ls", "bash /dev/shm/x",
			"cat <<\\EOF\n# a \\\nEOF\n",
			"ls", "timeout 5 ls", "nice ls", "grep curl a.txt", "timeout -k 1 5 grep curl a", "cat <<< curl",
			"apt-get install -y curl", "apt install curl", "brew install curl", "which curl", "pip install curl",
			"python3 -m pip install curl", "docker build -t curl .", "docker pull curl", "docker rm curl", "make curl",
			"cargo build -p curl", "npm install curl", "chmod +x curl", "export X=1 curl", "pytest -k curl",
			"python3 -m pytest -k curl", "uv pip install curl", "arch", "cp curl x", "systemctl status curl",
		},
	} {
		for _, command := range commands {
			j := Judge{Known: known(), Rules: policy(t, "deny Bash(curl:*)", "allow Bash"), Place: here()}
			v := j.Call(Call{Tool: "Bash", Kind: "command", Command: command})
			if word == Ask && v.Decision == Deny {
				continue // the built-in tables deny it already
			}
			if v.Decision != word || word == Ask && !v.Explicit {
				t.Errorf("%s: %s (explicit %v), want %s: %+v", command, v.Decision, v.Explicit, word, v.Reasons)
			}
			j.Rules = policy(t, "allow Bash")
			if v := j.Call(Call{Tool: "Bash", Kind: "command", Command: command}); word == Ask && v.Decision == Ask &&
				v.Explicit {
				t.Errorf("%s is asked about without a rule: %+v", command, v.Reasons)
			}
		}
	}
}

// TestRemovalBehindWrappers: what no mode allows is found there as well.
func TestRemovalBehindWrappers(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"env -S 'rm -rf x'", "flock -w 5 l rm -rf x", "stdbuf --output L rm -rf x", "ionice --class 3 rm -rf x",
		"eval -- rm -rf x", "bash <<< 'rm -rf x'", "echo 'rm -rf x' | bash", "setpriv --nnp rm -rf x",
		"/usr/bin/time -o f rm -rf x", "bash <<'E'\nrm -rf x\nE\n", "unshare -r rm -rf x", "tmux new rm -rf x",
	} {
		if v := Tools.Command(command, here()); v.Decision != Deny {
			t.Errorf("%s: %s: %+v", command, v.Decision, v.Reasons)
		}
	}
}

// TestVariablesInsideWalls: what decides which programs run may be set where they can harm nothing.
func TestVariablesInsideWalls(t *testing.T) {
	t.Parallel()
	walled := here()
	walled.Containment.Walls = true
	for command, inside := range map[string]Decision{
		"PATH=$PWD/bin:$PATH make": Ask, "export PYTHONPATH=src": Ask, "env NODE_OPTIONS=--no-warnings npm test": Ask,
		"CC=clang make": Ask, "for PATH in a b; do ls; done": Ask, "read PATH": Ask, "GOFLAGS=-mod=mod go test": Ask,
		"GIT_DIR=x git log": Ask, "BASH_ENV=x bash -c ls": Ask, "OPENAI_API_KEY=x ls": Ask, "IFS=/ ls": Ask,
		"env ANTHROPIC_BASE_URL=x ls": Ask, "LD_LIBRARY_PATH=lib ./prog": Ask, "HTTPS_PROXY=x ls": Ask,
	} {
		if v := Tools.Command(command, here()); v.Decision != Deny {
			t.Errorf("%s outside: %s", command, v.Decision)
		}
		if v := Tools.Command(command, walled); v.Decision != inside {
			t.Errorf("%s inside: %s, want %s: %+v", command, v.Decision, inside, v.Reasons)
		}
	}
}
