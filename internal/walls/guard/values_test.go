package guard

import (
	"strings"
	"testing"
)

// lacking is a place that holds, but for a directory of git's ignored files and a large one.
func lacking() Place {
	place := held()
	place.Containment.Cover.Gaps = []Gap{
		{Path: "/w/ws/dist", Why: "it is ignored"}, {Path: "/w/ws/data/big.bin", Why: "it is large", Loose: true},
	}
	place.ResolveLinks = func(path string) []string { // dd leads to dist, lk to a file in it, v to what decides later
		for link, to := range map[string]string{
			"dd": "/w/ws/dist", "lk": "/w/ws/dist/out", "v": "/w/ws/sub/.vscode", "far": "/w/home/x",
		} {
			if path == "/w/ws/"+link {
				return []string{to}
			}
		}
		return nil
	}
	return place
}

// TestWaysToGaps: what no snapshot has is asked about over links, variables, flags and programs that no table has, and
// nothing else is.
func TestWaysToGaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		lines []string
	}{
		{"undo does not cover", []string{
			"rm -rf dd/*", "echo x > lk", "find dd/ -delete", "truncate -s 0 dd/out", "echo x > dd/new", "cp a lk",
			"f=dist/out; : > $f", "f=dist; rm -rf \"$f\"", "for f in a dist; do rm -rf $f; done",
			"d=dist; : > $d/out",
			"sort -o dist/out y", "gzip dist/out", "x=$(mktemp); python3 y.py dist/out", "tool --output=dist/out",
			": > $f", "rm -rf \"$x\"", "while read f; do rm -rf \"$f\"; done", "rm -rf $(cat list)", "rm -r d*",
			"sh -c 'rm -rf dist'",
			"find . -name a -exec cp {} dist/out \\;", "find . -name a -fprint dist/out",
			"find . -fprintf dist/out %p",
			"git diff --no-index --output=dist/out a b", "git log --output=data/big.bin", "git diff --outpu dist/out",
			"git archive -o dist/out HEAD", "git archive -odist/out HEAD", "/usr/bin/time -o dist/out ls",
			"env time -ao dist/out ls", "strace -fo dist/out ls", "valgrind --log-file=dist/out ls",
			"perf stat -o dist/out ls", "nice strace --output=dist/out ls", "sed 'w dist/out' a",
			"sed -n -e '/x/w dist/out' a", "sed s/a/b/w\\ dist/out a", "cd sub; for f in dist; do rm -rf ../$f; done",
			"uniq a dist/out",
			"find \"$x\" -exec rm {} +", "fd x -x rm", "fd x -x rm {}", "xargs -I% find % -exec rm {} +",
			"find dd/ -exec rm {} +", "find -exec rm {} +", "find -L src -exec rm {} +",
			"find . -exec cp dist/out {} \\;", "find data -exec cp a {} \\;", "find . -execdir cp a big.bin \\;",
			"git bundle create dist/out HEAD", "git config -f data/big.bin a.b c", "git merge-file dist/out a b",
			"git -C data bundle create big.bin HEAD", "git worktree add dist/x", "git clone . dist/x",
			"git fast-export --export-marks=dist/out HEAD", "git mv dist/out x",
			"sed -f script dist/out", "sed -fscript -n dist/out", "sed -i -fscript dist/out",
			"sed -i -es/a/b/ dist/out", "sed -i --expression=s/a/b/ dist/out", "gsed -i s/a/b/ dist/out",
			"perl -pi -es/a/b/ dist/out",
			"env -C dist rm out", "env -C data sh -c 'rm big.bin'", "env --chdir=data truncate -s 0 big.bin",
			"env -C \"$x\" rm big.bin", "for i in 1; do cd data; done; rm big.bin",
			"f() { cd sub; }; f; sed -n 'w dist/out' a", "sort -odist/out a",
		}},
		{"is protected", []string{
			"echo x > v/tasks.json", "f=sub/.vscode/x; : > $f", "for f in .envrc; do echo x > $f; done",
		}},
		{"outside the workspace", []string{"echo x > far", "f=/etc/x; echo > $f"}},
		{"", []string{
			"rm dd", "for f in *.c; do rm -f $f.o; done", "for f in *.c; do rm -f ${f%.c}.o; done",
			"t=$(mktemp -d); cp a $t; rm -rf \"$t\"", "t=`mktemp`; echo > $t", "rm -f *.o", "rm -f src/*.pyc",
			"x=a; echo y > $x.txt", "echo y > out-$(date +%s).log", "rm -rf /tmp/$x", "cat dist/out",
			"ls -la $x dist",
			"node dist/cli.js a", ". dist/bin/activate", "dist/run x", "grep -r x dist", "sort dist/out",
			"tar --exclude=dist -czf x.tgz .", "find . -path './dist/*' -prune -o -name x -exec cat {} +",
			"d=$PWD/build; rm -rf $d", "echo x > $PWD/y", "timeout 5 cat dist/out", "git diff dist", "cd dist && ls",
			"cp dist/out here", "find dist -name x -exec cp {} here \\;", "find src -exec cp dist/out {} \\;",
			"find src -exec rm {} +", "find . -exec cp a b \\;", "sed -f script a", "sed -i /w/d a", "git add dist",
			"perl -i -ne '/a/ or print' a", "git -C dist log", "env -C sub rm out", "git config a.b c", "make -C sub",
			"git ls-files -o dist", "git grep -o dist", "strace -o a node -o dist/out", "sed s/a/b/ dist/out",
			"sed 's/new/old/w a' dist/out", "env -C dist ls", "time ls dist", "find dist -name x -exec grep y {} +",
			"strace -e open cat dist/out", "perf stat -e x cat dist/out", "sed -i 's/new dist/old/;s/w dist/x/' a",
			"[ -d dist ] && echo $x",
		}},
	} {
		for _, line := range c.lines {
			v := Judge{Known: known(), Place: lacking()}.Call(Call{Tool: "Bash", Kind: "command", Command: line})
			if c.why == "" && v.Decision != Allow || c.why != "" && v.Refusal == "" && v.Decision == Allow {
				t.Errorf("%s: %s, want it to say %q: %+v", line, v.Decision, c.why, v.Reasons)
			} else if c.why != "" && !strings.Contains(v.Refusal, c.why) &&
				!strings.Contains(v.Reasons[0].Text, c.why) {
				t.Errorf("%s: %+v, want it to say %q", line, v.Reasons, c.why)
			}
		}
	}
}
