#!/bin/sh
# Installs omniagent for this user: the program into ~/.local/bin, its manual and the completions of bash, zsh and fish
# into ~/.local/share. What is downloaded is checked against SHA256SUMS before anything of it is unpacked.
#
#   sh install.sh [--dir DIRECTORY] [--remove]
#
# --dir is where the program goes. --remove takes away what an earlier call has installed.
# OMNIAGENT_RELEASES is the address of the directory with the archives and SHA256SUMS.
set -eu

version=@VERSION@
releases=${OMNIAGENT_RELEASES:-@RELEASES@}

fail() {
	printf 'install.sh: %s\n' "$1" >&2
	exit 1
}

fetch() { # NAME: into the directory of the same name
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL --proto-redir '=https' "$releases/$1" -o "$work/$1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q "$releases/$1" -O "$work/$1"
	else
		fail 'neither curl nor wget is here'
	fi || fail "$releases/$1 cannot be fetched"
}

sum() { # FILE
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum <"$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 <"$1"
	else
		fail 'neither sha256sum nor shasum is here, so nothing can be checked, and nothing is installed'
	fi | cut -d ' ' -f 1
}

put() { # MODE FROM TO
	mkdir -p "$(dirname "$3")"
	cp "$2" "$3.new"
	chmod "$1" "$3.new"
	mv "$3.new" "$3"
}

main() {
	: "${HOME:?install.sh: HOME is not set}"
	bin=$HOME/.local/bin
	share=$HOME/.local/share
	remove=
	while [ $# -gt 0 ]; do
		case $1 in
		--dir)
			[ $# -gt 1 ] || fail '--dir takes a directory'
			bin=$2
			shift
			;;
		--remove) remove=yes ;;
		*) fail "there is no option $1; they are --dir DIRECTORY and --remove" ;;
		esac
		shift
	done
	bash=$share/bash-completion/completions/omniagent
	fish=$share/fish/vendor_completions.d/omniagent.fish
	zsh=$share/zsh/site-functions/_omniagent
	if [ -n "$remove" ]; then
		rm -f "$bin/omniagent" "$bash" "$fish" "$zsh" "$share"/man/man1/omniagent.1 "$share"/man/man1/omniagent-*.1
		printf 'omniagent is removed from %s\n' "$bin"
		return
	fi
	case $(uname -s) in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	*) fail "there is no archive for $(uname -s) that this script can install" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) system=$system-amd64 ;;
	aarch64 | arm64) system=$system-arm64 ;;
	*) fail "there is no archive for $(uname -m)" ;;
	esac
	name=omniagent-$version-$system
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	fetch SHA256SUMS
	fetch "$name.tar.gz"
	wanted=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/SHA256SUMS")
	[ -n "$wanted" ] || fail "SHA256SUMS has no line for $name.tar.gz; nothing is installed"
	[ "$(sum "$work/$name.tar.gz")" = "$wanted" ] ||
		fail "$name.tar.gz is not what SHA256SUMS says; nothing is installed"
	tar -xzf "$work/$name.tar.gz" -C "$work"
	for page in "$work/$name"/man/man1/*.1; do
		put 644 "$page" "$share/man/man1/$(basename "$page")"
	done
	put 644 "$work/$name/completions/omniagent.bash" "$bash"
	put 644 "$work/$name/completions/omniagent.fish" "$fish"
	put 644 "$work/$name/completions/_omniagent" "$zsh"
	put 755 "$work/$name/omniagent" "$bin/omniagent"
	printf 'omniagent %s is in %s\n' "$("$bin/omniagent" --version)" "$bin"
	case :$PATH: in
	*":$bin:"*) ;;
	*) printf 'hint: that is not in your PATH; add it: export PATH="%s:$PATH"\n' "$bin" ;;
	esac
}

main "$@"
