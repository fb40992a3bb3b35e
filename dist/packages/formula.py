"""The formula for a tap of Homebrew, which installs the archives in the directory of the artifacts."""

from .release import DESCRIPTION, PACKAGE, write


def archives(release):
    """Maps each target to the name and SHA-256 of its archive."""
    found = {}
    for path in sorted(release.out.glob(f"kitbag-{release.version}-*.tar.gz.sha256")):
        digest, name = path.read_text().split()
        found[name.removeprefix(f"kitbag-{release.version}-").removesuffix(".tar.gz")] = (name, digest)
    return found


def make_index(release):
    found = archives(release)
    blocks = []
    for system, vendor in (("macos", "apple-darwin"), ("linux", "unknown-linux-gnu")):
        inner = []
        for processor, machine in (("arm", "aarch64"), ("intel", "x86_64")):
            if f"{machine}-{vendor}" in found:
                name, digest = found[f"{machine}-{vendor}"]
                inner += [f"    on_{processor} do", f'      url "{release.url}/{name}"']
                inner += [f'      sha256 "{digest}"', "    end"]
        if inner:
            blocks += [f"  on_{system} do", *inner, "  end"]
    blocks = "\n".join(blocks)
    name = "".join(part.capitalize() for part in PACKAGE.split("-"))
    formula = f"""\
class {name} < Formula
  desc "{DESCRIPTION}"
  homepage "{release.repository or release.url}"
  version "{release.version}"
  license any_of: ["MIT", "Apache-2.0"]

{blocks}

  def install
    bin.install "bin/kitbag"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/kitbag"
    fish_completion.install "share/fish/vendor_completions.d/kitbag.fish"
    zsh_completion.install "share/zsh/site-functions/_kitbag"
  end

  test do
    assert_equal "kitbag #{{version}}", shell_output("#{{bin}}/kitbag --version").strip
  end
end
"""
    return [write(release.out / f"{PACKAGE}.rb", formula.encode())]
