# The program of the release, which is one file.
class Adit < Formula
  desc "Encrypted tunnels and proxies in one program"
  homepage "@URL@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@DOWNLOADS@/adit-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SUM_MACOS_ARM@"
    end
    on_intel do
      url "@DOWNLOADS@/adit-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SUM_MACOS_INTEL@"
    end
  end

  on_linux do
    on_arm do
      url "@DOWNLOADS@/adit-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SUM_LINUX_ARM@"
    end
    on_intel do
      url "@DOWNLOADS@/adit-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SUM_LINUX_INTEL@"
    end
  end

  def install
    bin.install "adit"
    man1.install Dir["man/*.1"]
    man5.install Dir["man/*.5"]
    man7.install Dir["man/*.7"]
    bash_completion.install "completions/adit.bash" => "adit"
    zsh_completion.install "completions/_adit"
    fish_completion.install "completions/adit.fish"
  end

  service do
    run [opt_bin/"adit", "run", "-c", etc/"adit/adit.toml"]
    keep_alive successful_exit: false
    log_path var/"log/adit.log"
    error_log_path var/"log/adit.log"
  end

  def caveats
    <<~TEXT
      `brew services start adit` runs the routes of #{etc}/adit/adit.toml, which you write:
      `adit help config` describes it.
    TEXT
  end

  test do
    system bin/"adit", "up", "--once"
  end
end
