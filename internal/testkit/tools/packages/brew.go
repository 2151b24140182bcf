package main

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"omniagent/internal/cli/command"
	"omniagent/internal/testkit/measure"
)

// formula is how Homebrew installs the archives, which it takes from the address that was given.
func (r *release) formula(files []file) file {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# Made by scripts/packages; do not edit it by hand.\nclass Omniagent < Formula\n  desc %q\n  homepage %q\n  "+
			"version %q\n  license \"MIT\"\n",
		strings.ToUpper(r.program.Summary[:1])+r.program.Summary[1:], r.base, command.Version)
	for _, system := range [][2]string{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		fmt.Fprintf(&b, "\n  %s do\n", system[1])
		for _, processor := range [][2]string{{"arm64", "on_arm"}, {"amd64", "on_intel"}} {
			name := base(measure.Target{OS: system[0], Arch: processor[0]}) + ".tar.gz"
			for _, f := range files {
				if f.name == name {
					fmt.Fprintf(&b, "    %s do\n      url \"%s/%s\"\n      sha256 \"%x\"\n    end\n", processor[1],
						r.base, name, sha256.Sum256(f.data))
				}
			}
		}
		b.WriteString("  end\n")
	}
	b.WriteString(`
  def install
    bin.install "omniagent"
    bin.install_symlink "omniagent" => "eidolon"
    bin.install_symlink "omniagent" => "yume-cli"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/omniagent.bash" => "omniagent"
    zsh_completion.install "completions/_omniagent"
    fish_completion.install "completions/omniagent.fish"
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/omniagent --version").strip
  end
end
`)
	return file{name: "Formula/omniagent.rb", data: []byte(b.String())}
}
