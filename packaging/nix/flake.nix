{
  description = "Encrypted tunnels and proxies in one program";

  inputs.nixpkgs.url = "nixpkgs";

  outputs =
    { self, nixpkgs }:
    let
      version = "@VERSION@";
      # The archives of the release. Those for Linux are static: they need no patching.
      archives = {
        x86_64-linux = {
          target = "x86_64-unknown-linux-musl";
          sha256 = "@SUM_LINUX_INTEL@";
        };
        aarch64-linux = {
          target = "aarch64-unknown-linux-musl";
          sha256 = "@SUM_LINUX_ARM@";
        };
        x86_64-darwin = {
          target = "x86_64-apple-darwin";
          sha256 = "@SUM_MACOS_INTEL@";
        };
        aarch64-darwin = {
          target = "aarch64-apple-darwin";
          sha256 = "@SUM_MACOS_ARM@";
        };
      };
      adit =
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          archive = archives.${system};
        in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "adit";
          inherit version;
          src = pkgs.fetchurl {
            url = "@DOWNLOADS@/adit-${version}-${archive.target}.tar.gz";
            inherit (archive) sha256;
          };
          nativeBuildInputs = [ pkgs.installShellFiles ];
          dontConfigure = true;
          dontBuild = true;
          dontStrip = true;
          installPhase = ''
            runHook preInstall
            install -Dm755 adit "$out/bin/adit"
            installManPage man/*
            installShellCompletion --cmd adit \
              --bash completions/adit.bash --zsh completions/_adit --fish completions/adit.fish
            runHook postInstall
          '';
          meta = {
            description = "Encrypted tunnels and proxies in one program";
            homepage = "@URL@";
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            platforms = builtins.attrNames archives;
            mainProgram = "adit";
          };
        };
      forEachSystem = nixpkgs.lib.genAttrs (builtins.attrNames archives);
    in
    {
      packages = forEachSystem (system: {
        default = adit system;
      });
      apps = forEachSystem (system: {
        default = {
          type = "app";
          program = "${self.packages.${system}.default}/bin/adit";
        };
      });
    };
}
