#!/bin/sh
# Installs kitbag @VERSION@ with its manual and completions in ~/.local; needs no root.
#
#   KITBAG_PREFIX   install in this directory instead of ~/.local
#   KITBAG_URL      download the archive from this directory; its SHA-256 must be the one below
set -eu

url=${KITBAG_URL:-@URL@}
prefix=${KITBAG_PREFIX:-$HOME/.local}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

# A function, so that a part of this script does nothing.
main() {
  case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) fail "there is no binary for the processor $(uname -m)" ;;
  esac
  case $(uname -s) in
  Linux) target=$machine-unknown-linux-gnu ;;
  Darwin) target=$machine-apple-darwin ;;
  *) fail "there is no binary for the system $(uname -s)" ;;
  esac
  case $target in
    # ARCHIVES
  *) fail "there is no binary for $target" ;;
  esac
  name=kitbag-@VERSION@-$target

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$work/archive" "$url/$name.tar.gz"
  elif command -v wget >/dev/null; then
    wget --quiet --output-document="$work/archive" "$url/$name.tar.gz"
  else
    fail "curl or wget is required"
  fi || fail "$url/$name.tar.gz cannot be downloaded"

  if command -v sha256sum >/dev/null; then
    found=$(sha256sum "$work/archive")
  elif command -v shasum >/dev/null; then
    found=$(shasum -a 256 "$work/archive")
  else
    fail "sha256sum or shasum is required"
  fi
  [ "${found%% *}" = "$digest" ] || fail "the archive has the SHA-256 ${found%% *} instead of $digest; nothing was installed"

  tar -xzf "$work/archive" -C "$work"
  mkdir -p "$prefix/bin" "$prefix/share"
  cp -R "$work/$name/share/." "$prefix/share"
  # A rename also replaces a program that runs.
  cp "$work/$name/bin/kitbag" "$prefix/bin/.kitbag.new"
  mv -f "$prefix/bin/.kitbag.new" "$prefix/bin/kitbag"

  echo "Installed $("$prefix/bin/kitbag" --version) in $prefix/bin"
  case :$PATH: in
  *":$prefix/bin:"*) ;;
  *) echo "Add $prefix/bin to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
}

main
