package guard

import "testing"

// TestRulesBehindOtherPrograms: a deny of the user holds in what other programs start, and where their language is not
// read, it is asked about.
func TestRulesBehindOtherPrograms(t *testing.T) {
	t.Parallel()
	for want, lines := range map[Decision][]string{
		Deny: {
			"npx -c 'rm d2'", "npx --call='rm d2'", "npm exec rm d", "npm exec -c 'rm d'", "npm x -- rm d",
			"pnpm exec rm d",
			"yarn exec rm d", "uv run rm d", "uv run --with x rm d", "poetry run rm d",
			"python3 -m pipenv run rm d", "conda run -n x rm d",
			"git -c alias.z='!rm d5' z", "git -c core.pager='rm d7' -p log", "git -c core.fsmonitor='rm d' status",
			"git submodule foreach rm d", "git submodule foreach --recursive 'rm d'", "git rebase -x 'rm d' main",
			"git rebase --exec='rm d' main", "git bisect run rm d", "env -i - rm d7", "env - rm d",
			"mapfile -C 'rm d' -c 1 a",
			"readarray -C 'rm d' a", "compgen -C 'rm d'", "sg users -c 'rm d'", "split --filter='rm d' x",
			"tar xf x --to-command='rm d'",
			"bundle exec rm d",
			"rg --pre 'rm d' x", "su -c'rm x'", "su --command='r\"\"m x'", "su - x -c 'rm y'",
			"script -qc'rm x' /dev/null",
			"script --command='rm x' f", "runuser -c 'rm x' y", "tar cIf 'r\"\"m x' a.tar f", "tar cfI a.tar 'rm x' f",
			"cross-env A=b rm d", "find . -exec rm {} +", "fd -x rm",
		},
		Ask: {
			"python3 -c 'os.system(\"rm d1\")'", "python3 -c 'import shutil'", "python - <<E\nx\nE",
			"echo x | python3",
			"perl -e 'unlink q(x)'", "perl -ne 'print'", "ruby -e 'x'", "node -e 'x'", "php -r 'x'",
			"awk 'BEGIN{system(\"r\" \"m x\")}'",
			"awk '{print | \"sh\"}' x", "sed '1e rm d' x", "sed 's/.*/x/e' x", "sed -n e x",
			"tmux new-session -d 'rm x'",
			"gdb -ex 'shell rm x'", "tar cf x . --checkpoint-action=exec=rm\\ d",
			"npm --script-shell rm exec -c ls", "git -c \"$x\" log", "git filter-branch --tree-filter 'x' main",
			"make --eval='x:;y'",
			"python3 -B <<< 'x'", "python3 -X utf8 <<< x", "perl -w <<< x", "ruby -w <<< x", "php -a <<< x",
			"node --input-type=module <<< x", "php -R 'x'", "node --import 'data:text/javascript,x' x.js",
			"python3 -m timeit -n 1 'x'", "python3 -m code <<< x", "nodejs -e x", "perl5.36-x86_64-linux-gnu -e x",
			"irb",
			"view -es -c '!r\\m x' -c q f", "vimdiff -c x a b", "pypy3 -c x", "luajit -e x", "ipython -c x", "R -e x",
			"julia -e x", "guile -c x", "ksh93", "yash", "bash-static", "python3 manage.py shell -c x",
			"python3 /dev/fd/3",
			"python3 -", "python3 -i x.py", "php -d auto_prepend_file=data:x x.php", "perl '-Mx;y' z", "deno eval x",
			"python3 -m coverage run -m code", "python3 -um timeit x", "python3 $x", "ruby -rx -e y", "php < x",
			"script -c'rm${IFS}x' /dev/null", "strace -o '|r\"\"m x' ls", "strace -o'!r\"\"m x' ls",
			"dpkg --pre-invoke='r\"\"m x' --configure -a", "apt-get -o APT::Update::Pre-Invoke::='r\"\"m x' update",
			"apt-get -oDpkg::Pre-Invoke::='r\"\"m x' update", "tar --checkpoint-action=exec='r\"\"m x' -cf a b",
			"tar --checkpoint-act 'exec=x y|z' -cf a b", "make 'CC=r\"\"m x' f.o", "make A=r B=m 'CC=$(A)$(B) x' f.o",
			"make -E 'x:;r\"\"m x'", "script -q /dev/null rm x", "runuser -u x rm y", "su -c'r${x}m'",
			"sed '1erm x' f", "sed '1er\"\"m x' f", "sed 's x y e' f", "sed 's/a/b/Me' f", "sed '/x/I e' f",
			"sed -n '$!e' f",
			"sed -e p -e 'e ls' f", "sed -ne's/a/b/pe' f", "sed -i .bak 's/a/b/e' f", "sed -i '' 's/a/b/e' f",
			"sed '/[/]/e' f", "sed --expression=e f", "sed '{p;e}' f", "sed 'y/a/b/;e' f", "sed '1,2!{s,a,b,e}' f",
			"sed 'a x\\\\\ne r\"\"m x' f",
			"env 'BASH_ENV=$(rm x)' bash -c :", "env GIT_EXTERNAL_DIFF='r\"\"m x' git diff",
			"env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls", "read -r PS4 <<< '$(rm x)'; set -x; :", "mapfile -t PS4",
			"for PS4 in '$(rm x)'; do set -x; done", "BASH_CMDS[foo]=/bin/rm; foo x", "BASH_ALIASES[foo]='rm x'; foo",
			"TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=rm' tar cf a.tar f",
			"GOFLAGS=-toolexec=rm go vet std",
			"MAKEFILES=/dev/fd/3 make", "npm_config_script_shell=rm npm exec -c ls", "CC='rm x' make f.o",
			"CC='r\"\"m x' make f.o", "BROWSER='rm %s' python3 -m webbrowser http://x", "SHELL=/bin/rm script -qc x f",
			"RANDOM='a[$(r\"\"m x)]'", "OPTIND='a[$(x)]'", "for SECONDS in 'a[$(x)]'; do :; done", "read HISTCMD",
			"export EDITOR=\"$x\"", "PAGER=$(x); git log", "printf -v PS4 x", "sudo FOO=/bin/rm make",
			"GIT_EXTERNAL_DIFF='r\"\"m d' git diff", "vim -c '!x'",
			// what is not looked into, though it is harmless
			"sed -n '/e/I,+3p' f", "sed ':a;N;$!ba;s/\\n/ /g' f", "sed '1i\\\ne text' f", "sed '/x/{s/e/e/;p}' f",
			"sed 's/a/b/w out' f", "sed 'y/abc/xyz/' f", "sed \"s/$PWD/b/\" f", "sed '\\,a,d' f", "sed 1~2d f",
			"python3 -u -W ignore -X utf8 x.py -c y", "python3 -Wignore -mpip list",
			"php -d memory_limit=-1 x.php", "perl -w -Ilib x.pl", "ruby -Ilib -w x.rb", "node --test",
			"node --no-warnings --max-old-space-size=99 x.js", "node -r ./a x.js", "julia --project=. x.jl",
			"python3 -m coverage run -m pytest", "make 'X=a b$(c)'", "make A=$x",
			"tar czf a.tgz --exclude='*.o' b", "dpkg -l 'lib*'",
		},
		Allow: {
			"make CC=clang CFLAGS='-O2 -g' -j8", "make -e x", "tar czf a.tgz b", "tar cIf zstd a.tar b",
			"tar --checkpoint-action=dot -cf a b", "strace -o out -f ls", "dpkg -l", "script -c ls f",
			"apt-get -o Dpkg::Options::=--force-confold -o Acquire::Retries=3 -y autoremove",
			"sed -i.bak -E 's|/a|/b|g; 1d' f", "sed '/a/,/b/d' f",
			"sed -e '1a see x' -e '$d' f", "sed -i '' 's/a/b/' f",
			"sed -f x f", "sed '2q' f", "sed '5,$!d' f",
			"sed '/^$/d;/^#/d' f",
			"sed -n -e 3p -e 5p f", "sed --in-place=.b s/a/b/ f",
			"x=$(mktemp -d); ls $x", "VERSION=$(git describe) make", "PATH=$PWD/bin:$PATH make",
			"export PATH=$HOME/bin:$PATH",
			"for f in *.c; do gcc -c $f; done", "CC=clang CFLAGS='-O2 -g' make", "OUT=$(pwd)/x; ls $OUT", "read line",
			"env PYTHONPATH=src LC_ALL=C pytest", "NODE_ENV=test npm test", "GOFLAGS=-mod=mod go build ./...",
			"DJANGO_SETTINGS_MODULE=a.b python3 manage.py test", "SECONDS=0", "export DEBUG=1", "printf '%s' x",
			"python3 x.py", "python3 -m pytest -c x",
			"python3 --version", "node --version", "php -v",
			"Rscript x.R", "R CMD check x", "deno run -A x.ts", "bun test",
			"node-gyp rebuild",
			"python3 -m venv x", "php artisan test", "ruby bin/rails test",
			"node x.js", "awk '{print $1}' x", "sed -i s/a/b/ x", "sed 's/one/there/g' x",
			"sed -n '1,5p' x",
			"git commit -m 'rm the file'", "git -c user.name=x commit -m y", "echo 'rm x'", "grep -r 'rm x' .",
			"npm test",
			"npm run build", "npx tsc", "uv run pytest", "git log --grep='rm x'", "bash -c 'echo rm x'", "make",
			"mapfile -t a",
			"tar xf rm.tar", "git rm x", "docker ps", "GIT_PAGER=cat git log", "git submodule status",
			"mkdir -p a/rm",
		},
	} {
		for _, line := range lines {
			j := Judge{Known: known(), Place: held(), Rules: policy(t, "deny Bash(rm:*)")}
			v := j.Call(Call{Tool: "Bash", Kind: "command", Command: line})
			if v.Decision != want || want > Allow && !v.Explicit {
				t.Errorf("%s: %s, want %s: %+v", line, v.Decision, want, v.Reasons)
			}
		}
	}
}
