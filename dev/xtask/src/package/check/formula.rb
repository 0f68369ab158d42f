# Evaluates a formula with classes in place of Homebrew's, runs its installation, and prints its archives.
#
#   formula.rb FORMULA PREFIX      in the unpacked archive

require "fileutils"
require "json"
require "pathname"

ARCHIVES = []

# A folder below the prefix, into which a formula installs.
class Folder < Pathname
  def install(files)
    mkpath
    pairs = files.is_a?(Hash) ? files.to_a : Array(files).map { |file| [file, File.basename(file)] }
    raise "nothing to install in #{self}" if pairs.empty?

    pairs.each { |from, name| FileUtils.cp(from, self + name) }
  end
end

# The methods that a formula calls.
class Formula
  class << self
    def desc(text)
      raise "the description has #{text.length} characters, more than 80" if text.length > 80
    end

    def homepage(_) = nil
    def version(_) = nil
    def license(_) = nil
    def on_macos = yield
    def on_linux = yield
    def on_arm = yield
    def on_intel = yield
    def url(address) = ARCHIVES.push({ url: address })
    def sha256(sum) = ARCHIVES.last.store(:sha256, sum)
    def service(&block) = const_set(:SERVICE, block)
    def test(&block) = const_set(:TEST, block)
  end

  %i[bin man1 man5 man7 bash_completion zsh_completion fish_completion].each do |name|
    define_method(name) { Folder.new(File.join(ARGV[1], name.to_s)) }
  end

  def etc = Folder.new("/etc")
end

load File.expand_path(ARGV[0])
formula = Adit.new
formula.install
raise "no service" unless Adit::SERVICE
raise "no test" unless Adit::TEST
raise "no caveats" if formula.caveats.empty?

puts JSON.generate(ARCHIVES)
