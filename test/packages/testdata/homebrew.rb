# Stands in for Homebrew: as much of the language of a formula as ours uses, and no more, so that another word is an error.
#
#   ruby homebrew.rb FORMULA SYSTEM PROCESSOR ARCHIVES PREFIX [test]
#
# It takes the archive that the formula names for that system from the directory ARCHIVES, wants its sum to be as the formula says, unpacks
# it, and installs into PREFIX. With "test" the formula's own test has to pass.
require "digest"
require "fileutils"
require "pathname"
require "tmpdir"

FORMULA, SYSTEM, PROCESSOR, ARCHIVES, PREFIX, TEST = ARGV

# A directory that things are installed into.
class Place < Pathname
  def install(*things)
    mkpath
    things.flatten.each do |thing|
      thing.is_a?(Hash) ? thing.each { |from, to| FileUtils.cp(from, self + to) } : FileUtils.cp(thing, self)
    end
  end

  def install_symlink(links)
    mkpath
    links.each { |from, to| File.symlink(from, self + to) }
  end
end

class Formula
  class << self
    attr_reader :check

    def facts = @facts ||= {}

    %i[desc homepage version license url sha256].each do |name|
      define_method(name) do |value|
        raise "#{name} is given twice" if facts.key?(name)

        facts[name] = value
      end
    end

    def on_macos = (yield if SYSTEM == "darwin")
    def on_linux = (yield if SYSTEM == "linux")
    def on_arm = (yield if PROCESSOR == "arm64")
    def on_intel = (yield if PROCESSOR == "amd64")
    def test(&block) = @check = block
  end

  {
    bin: "bin", man1: "share/man/man1", bash_completion: "etc/bash_completion.d",
    zsh_completion: "share/zsh/site-functions", fish_completion: "share/fish/vendor_completions.d",
  }.each { |name, dir| define_method(name) { Place.new(File.join(PREFIX, dir)) } }

  def version = self.class.facts[:version]

  def shell_output(command)
    output = `#{command}`
    raise "#{command} fails" unless $?.success?

    output
  end

  def assert_equal(want, got)
    raise "#{got.inspect} is not #{want.inspect}" unless want == got
  end
end

load File.expand_path(FORMULA)
facts = Omniagent.facts
%i[desc homepage version license url sha256].each { |name| raise "the formula has no #{name}" unless facts[name] }

archive = File.join(ARCHIVES, File.basename(facts[:url]))
raise "#{archive} has another sum" unless Digest::SHA256.file(archive).hexdigest == facts[:sha256]

formula = Omniagent.new
Dir.mktmpdir do |dir|
  system("tar", "-xzf", archive, "-C", dir, exception: true)
  inside = Dir.children(dir)
  raise "Homebrew enters the only directory of an archive, and here are #{inside}" unless inside.length == 1

  Dir.chdir(File.join(dir, inside.first)) { formula.install }
end
formula.instance_eval(&Omniagent.check) if TEST == "test"
