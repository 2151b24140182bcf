package guard

// readOnly is the table of programs that only read, with the flags that keep it so. Flags that write, run a program,
// read a list of names, or wait without end are left out.
//
// Long because it is one table.
func readOnly(name string) (grammar, bool) {
	sums := "-b --binary -t --text --tag -z --zero"
	g, ok := map[string]grammar{
		"ls": {flags: "-1 -a -A -b -B -c -C -d -f -F -g -G -h -H -i -k -l -m -n -N -o -p -q -Q -r -R -s -S -t -u -U " +
			"-v -x -X -Z --all --almost-all --author --color? --classify? " +
			"--directory --full-time --group-directories-first --human-readable --inode --no-group --numeric-uid-gid " +
			"--recursive --reverse --size --sort:d --time:d --time-style:d " +
			"--format:d --hide:d --ignore:d --indicator-style:d --block-size:d"},
		"cat": {
			flags: "-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank " +
				"--show-tabs --show-nonprinting",
		},
		"head": {
			flags:  "-n:n -c:n -q -v -z --lines:n --bytes:n --quiet --silent --verbose --zero-terminated",
			digits: true,
		},
		"tail": {
			flags:  "-n:n -c:n -q -v -z --lines:n --bytes:n --quiet --silent --verbose --zero-terminated",
			digits: true,
		},
		"wc":  {flags: "-c -l -m -w -L --bytes --chars --lines --words --max-line-length --total:d"},
		"tac": {flags: "-b -r -s:d --before --regex --separator:d"},
		"rev": {},
		"nl": {
			flags: "-b:d -d:d -f:d -h:d -i:n -l:n -n:d -p -s:d -v:n -w:n --body-numbering:d --number-format:d " +
				"--number-width:n --number-separator:d",
		},
		"cut": {
			flags: "-b:d -c:d -d:d -f:d -n -s -z --bytes:d --characters:d --delimiter:d --fields:d --complement " +
				"--only-delimited --output-delimiter:d --zero-terminated",
		},
		"paste":    {flags: "-d:d -s -z --delimiters:d --serial --zero-terminated"},
		"fold":     {flags: "-b -s -w:n --bytes --spaces --width:n"},
		"fmt":      {flags: "-c -s -t -u -w:n --width:n"},
		"expand":   {flags: "-i -t:d --initial --tabs:d"},
		"unexpand": {flags: "-a -t:d --all --tabs:d"},
		"column":   {flags: "-t -s:d -x"},
		"comm":     {flags: "-1 -2 -3 -z --check-order --nocheck-order --output-delimiter:d --total"},
		"join":     {flags: "-a:d -e:d -i -j:n -o:d -t:d -v:d -1:n -2:n --header"},
		"tr": {
			flags: "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1", operands: data,
			ordered: true, least: 1, most: 2,
		},
		"seq": {
			flags: "-f:d -s:d -w --format:d --separator:d --equal-width", operands: numbers, least: 1,
			most: 3,
		},
		"sort": {
			flags: "-b -c -C -d -f -g -h -i -k:d -M -m -n -r -R -s -t:d -u -V -z --check? --dictionary-order " +
				"--field-separator:d --general-numeric-sort --human-numeric-sort --ignore-case " +
				"--ignore-leading-blanks --key:d --merge --month-sort --numeric-sort --reverse --stable --unique " +
				"--version-sort --zero-terminated",
		},
		"uniq": {
			flags: "-c -d -D -f:n -i -s:n -u -w:n -z --count --repeated --ignore-case --skip-fields:n --skip-chars:n " +
				"--unique --check-chars:n --zero-terminated", ordered: true, most: 1,
		},
		"diff": {
			flags: "-a -b -B -c -C:n -d -e -E -i -I:d -N -q -r -s -t -T -u -U:n -w -W:n -x:d -y -Z --brief --color? " +
				"--context? --exclude:d --expand-tabs --ignore-all-space --ignore-blank-lines --ignore-case " +
				"--ignore-space-change --ignore-trailing-space --minimal --new-file --no-dereference --recursive " +
				"--report-identical-files --side-by-side --strip-trailing-cr --suppress-common-lines --text " +
				"--unified? --width:n", recurses: "-r --recursive",
		},
		"cmp": {
			flags: "-b -i:d -l -n:n -s --bytes:n --ignore-initial:d --print-bytes --quiet --silent --verbose",
		},
		"stat": {flags: "-c:d -f -L -t --dereference --file-system --format:d --printf:d --terse"},
		"file": {
			flags: "-b -h -i -k -L -N -r --brief --mime --mime-type --mime-encoding --keep-going --dereference " +
				"--no-dereference --no-pad --raw --extension --apple",
		},
		"du": {
			flags: "-0 -a -b -c -d:n -h -k -l -m -s -S -x --all --apparent-size --block-size:d --bytes --exclude:d " +
				"--human-readable --max-depth:n --null --one-file-system --separate-dirs --si --summarize " +
				"--threshold:d --time? --total",
		},
		"df": {
			flags: "-a -h -H -i -k -l -P -t:d -T -x:d --all --human-readable --inodes --local --portability " +
				"--print-type --si --total --type:d --exclude-type:d",
		},
		"basename": {flags: "-a -s:d -z --multiple --suffix:d --zero", operands: data, ordered: true},
		"dirname":  {flags: "-z --zero", operands: data, ordered: true},
		"realpath": {
			flags: "-e -m -q -s -z --canonicalize-existing --canonicalize-missing --quiet --strip --no-symlinks " +
				"--zero --relative-to:f --relative-base:f",
		},
		"readlink": {
			flags: "-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing " +
				"--no-newline --quiet --silent --verbose --zero",
		},
		"date": {
			flags: "-d:d -I? -r:f -R -u --date:d --iso-8601? --reference:f --rfc-email --rfc-3339:d --utc " +
				"--universal",
			operands: data,
		},
		"uname": {
			flags: "-a -i -m -n -o -p -r -s -v --all --kernel-name --kernel-release --kernel-version --machine " +
				"--nodename --operating-system --processor", operands: data,
		},
		"whoami":    {},
		"id":        {flags: "-g -G -n -r -u -z --group --groups --name --real --user --zero", operands: data},
		"groups":    {operands: data},
		"nproc":     {flags: "--all"},
		"arch":      {},
		"tty":       {flags: "-s"},
		"uptime":    {flags: "-p -s --pretty --since"},
		"free":      {flags: "-b -k -m -g -h -t -w --human --mebi --gibi --total --wide"},
		"which":     {flags: "-a", operands: data, ordered: true},
		"sha1sum":   {flags: sums},
		"sha224sum": {flags: sums},
		"sha256sum": {flags: sums},
		"sha384sum": {flags: sums},
		"sha512sum": {flags: sums},
		"md5sum":    {flags: sums},
		"b2sum":     {flags: sums},
		"cksum":     {},
		"sum":       {flags: "-r -s"},
		"base32":    {flags: "-d -w:n --decode --wrap:n", ordered: true, most: 1},
		"base64":    {flags: "-d -w:n --decode --wrap:n", ordered: true, most: 1},
		"od": {
			flags: "-A:d -t:d -N:n -j:n -v -w? -a -b -c -d -f -i -l -o -s -x --address-radix:d --format:d " +
				"--read-bytes:n --skip-bytes:n --output-duplicates --width?", ordered: true,
		},
		"hexdump": {flags: "-b -c -C -d -n:n -o -s:n -v -x", ordered: true},
		"strings": {flags: "-a -n:n -t:d -e:d --all --bytes:n --radix:d --encoding:d", digits: true},
		"tree": {
			flags: "-a -d -f -h -i -p -s -u -g -D -F -C -n -r -t -v -J -X -L:n -I:d -P:d --dirsfirst --noreport " +
				"--filelimit:n --du --prune --gitignore --charset:d",
		},
		"grep": {
			flags: "-a -A:n -b -B:n -c -C:n -e:d -E -f:f -F -G -h -H -i -I -l -L -m:n -n -o -P -q -r -s -T -v -w -x " +
				"-y -z -Z --after-context:n --basic-regexp --before-context:n " +
				"--binary-files:d --byte-offset --color? --colour? --context:n --count --exclude:d --exclude-dir:d " +
				"--extended-regexp --file:f --files-with-matches --files-without-match --fixed-strings " +
				"--ignore-case --include:d --initial-tab --invert-match --label:d --line-buffered --line-number " +
				"--line-regexp --max-count:n --no-filename --no-ignore-case --no-messages --null " +
				"--null-data --only-matching --perl-regexp --quiet --silent --recursive --regexp:d --text " +
				"--with-filename --word-regexp",
			operands: pattern, least: 0, digits: true, recurses: "-r --recursive", script: "-e -f --regexp --file",
		},
		"rg": {
			flags: "-0 -. -a -A:n -B:n -c -C:n -d:n -e:d -f:f -F -g:d -H -i -I -j:n -l -m:n -M:n -n -N -o -p -P -q " +
				"-r:d -s -S -t:d -T:d -u -U -v -V -w -x --after-context:n --before-context:n " +
				"--case-sensitive --color:d --colors:d --column --context:n --count --count-matches --crlf --debug " +
				"--encoding:d --file:f --files --files-with-matches --files-without-match " +
				"--fixed-strings --glob:d --glob-case-insensitive --heading --hidden --iglob:d --ignore-case " +
				"--include-zero --invert-match --json --line-number --line-regexp --max-columns:n " +
				"--max-columns-preview --max-count:n --max-depth:n --max-filesize:d --multiline --multiline-dotall " +
				"--no-column --no-config --no-filename --no-heading --no-ignore --no-ignore-vcs " +
				"--no-line-number --no-messages --no-unicode --null --null-data --one-file-system --only-matching " +
				"--passthru --pcre2 --pretty --quiet --regexp:d --replace:d --smart-case --sort:d " +
				"--sortr:d --stats --text --threads:n --trim --type:d --type-list --type-not:d --unrestricted " +
				"--version --vimgrep --with-filename --word-regexp",
			operands: pattern, recurses: "*", script: "-e -f --regexp --file --files --type-list",
		},
	}[name]
	return g, ok
}
