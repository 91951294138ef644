#!/bin/sh
# Installs Gleaner from a folder or URL that scripts/dist filled, after checking the SHA-256 checksum. No root needed.
set -eu

usage() {
    cat <<'TEXT'
usage: install.sh [--from FOLDER|URL] [--prefix DIR]
       install.sh --uninstall [--prefix DIR]

  --from      where SHA256SUMS and the archives are: a folder, file://, https://, or http:// on this machine
              [default: the folder of install.sh]
  --prefix    where to install: DIR/bin/gleaner, DIR/share/man, … [default: $PREFIX, or ~/.local]
  --uninstall removes the files that install.sh installed; your data stays
TEXT
}

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}

work=
stage=
clean_up() {
    if [ -n "$work" ]; then rm -rf "$work"; fi
    if [ -n "$stage" ]; then rm -rf "$stage"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Plain HTTP is for this machine alone: anybody on the way could change the archive and its checksum together.
check_url() {
    case $1 in
        https://*) return ;;
        http://*) ;;
        *) fail "$1: give a folder, file://, https://, or http:// on this machine" ;;
    esac
    authority=${1#http://}
    authority=${authority%%[/?#]*}
    case $authority in
        127.0.0.1 | localhost | '[::1]') return ;;
        127.0.0.1:* | localhost:* | '[::1]:'*) port=${authority##*:} ;;
        *) port=x ;;
    esac
    case $port in
        '' | *[!0-9]*) fail "$1: refused, because http:// to another machine is not protected; use https://" ;;
    esac
}

# get NAME: brings a file from the source into $work.
get() {
    if [ -n "$folder" ]; then
        cp "$folder/$1" "$work/$1" 2>/dev/null || fail "there is no $1 in $folder"
    elif command -v curl >/dev/null 2>&1; then
        # A redirect may lead to another https:// address, and to nothing else.
        curl -fsSL --proto '=https,http' --proto-redir '=https' -o "$work/$1" "$url/$1" || fail "cannot download $url/$1"
    elif command -v wget >/dev/null 2>&1; then
        case $url in
            https://*) wget -q --https-only -O "$work/$1" "$url/$1" || fail "cannot download $url/$1" ;;
            *) wget -q --max-redirect=0 -O "$work/$1" "$url/$1" || fail "cannot download $url/$1" ;;
        esac
    else
        fail "install curl or wget to download, or give a folder: --from FOLDER"
    fi
}

sha256() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# unpack LIBC: fetches, checks and unpacks the archive for this machine; false if there is none or it does not run here.
unpack() {
    pattern="gleaner-[0-9][0-9A-Za-z.+~-]*-$machine-unknown-linux-$1\\.tar\\.gz"
    name=$(sed -n "s/^[0-9a-f]\\{64\\} [ *]\\($pattern\\)\$/\\1/p" "$work/SHA256SUMS")
    case $name in
        '') return 1 ;;
        *'
'*) fail "SHA256SUMS names several versions; give a folder with one" ;;
    esac
    expected=$(sed -n "s/^\\([0-9a-f]\\{64\\}\\) [ *]$pattern\$/\\1/p" "$work/SHA256SUMS")
    get "$name"
    actual=$(sha256 "$work/$name")
    if [ "$actual" != "$expected" ]; then
        fail "checksum mismatch: nothing was installed. Download $name again; if the mismatch stays, do not use it.
  expected $expected
  actual   $actual"
    fi
    rm -rf "$stage"
    mkdir -p "$stage" || fail "cannot write to $prefix; give another one: --prefix DIR"
    tar -xzof "$work/$name" -C "$stage" || fail "cannot unpack $name into $stage"
    tree=$stage/${name%.tar.gz}
    "$tree/bin/gleaner" --version >/dev/null 2>"$work/error"
}

# The list has a line per file, and a line with a slash at the end per folder that install.sh created.
is_listed() {
    [ -f "$list" ] && grep -qxF -e "$1" "$list"
}

# new_folders FILE: the folders that must be created for it, outermost first.
new_folders() {
    path=${1%/*}
    while [ "$path" != "$1" ] && [ ! -d "$prefix/$path" ]; do
        printf '%s/\n' "$path"
        case $path in
            */*) path=${path%/*} ;;
            *) break ;;
        esac
    done
}

# remove_listed LIST: removes the files, then the folders that are empty, innermost first.
remove_listed() {
    while IFS= read -r path; do
        case $path in
            '' | /* | ../* | */../* | */) ;;
            *) rm -f "$prefix/$path" ;;
        esac
    done <"$1"
    grep '/$' "$1" | sort -r | while IFS= read -r path; do
        case $path in
            /* | ../* | */../*) ;;
            *) rmdir "$prefix/$path" 2>/dev/null || true ;;
        esac
    done
}

uninstall() {
    [ -f "$list" ] || fail "install.sh has not installed Gleaner in $prefix: there is no $list"
    unit=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/gleaner.service
    if [ -f "$unit" ] && grep -qF "$prefix/bin/gleaner" "$unit"; then
        fail "systemd still starts it: run \`gleaner service uninstall\` first"
    fi
    work=$(mktemp -d)
    cp "$list" "$work/list"
    remove_listed "$work/list"
    rmdir "$prefix" 2>/dev/null || true
    echo "removed Gleaner from $prefix; your data stays in ${GLEANER_HOME:-$HOME/.pdpp}"
}

install() {
    folder=
    case $from in
        file://*) folder=${from#file://} ;;
        *://*) url=${from%/} && check_url "$url" ;;
        *) folder=$from ;;
    esac
    [ "$(uname -s)" = Linux ] || fail "there are archives for Linux only; build it instead: cargo install --path crates/cli"
    command -v sha256sum >/dev/null 2>&1 || command -v shasum >/dev/null 2>&1 ||
        fail "install sha256sum or shasum: without it the archive cannot be checked"
    machine=$(uname -m)
    case $machine in
        arm64) machine=aarch64 ;;
    esac
    work=$(mktemp -d)
    get SHA256SUMS
    # Below the prefix, so that each file is renamed into its place.
    stage=$prefix/.gleaner-install.$$
    : >"$work/error"
    if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then kinds="gnu musl"; else kinds=musl; fi
    found=
    for kind in $kinds; do
        if unpack "$kind"; then found=yes && break; fi
    done
    if [ -z "$found" ]; then
        [ ! -s "$work/error" ] || fail "the archive does not run on this machine: $(head -n 3 "$work/error")"
        fail "SHA256SUMS names no archive for $machine with this C library"
    fi

    (cd "$tree" && find . -type f | sed 's|^\./||' | sort) >"$work/files"
    while IFS= read -r path; do
        if [ -e "$prefix/$path" ] && ! is_listed "$path"; then
            fail "$prefix/$path is there, and install.sh did not install it. Move it away, or give another --prefix"
        fi
    done <"$work/files"
    {
        cat "$work/files"
        echo share/gleaner/installed
        # Folders of an earlier installation are still ours.
        if [ -f "$list" ]; then grep '/$' "$list" || true; fi
        while IFS= read -r path; do new_folders "$path"; done <"$work/files"
        new_folders share/gleaner/installed
    } | sort -u >"$work/list"
    if [ -f "$list" ]; then
        # Files of the earlier version that this one does not have.
        grep -vxF -f "$work/list" "$list" >"$work/old" || true
        remove_listed "$work/old"
    fi
    # First the list: after a kill, a second try knows these files as its own.
    mkdir -p "$prefix/share/gleaner"
    cp "$work/list" "$list"
    while IFS= read -r path; do
        mkdir -p "$prefix/${path%/*}"
        mv -f "$tree/$path" "$prefix/$path"
    done <"$work/files"
    echo "installed $("$prefix/bin/gleaner" --version) in $prefix"
    case :$PATH: in
        *:"$prefix/bin":*) ;;
        *) echo "$prefix/bin is not in your PATH; add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

action=install
from=$(dirname "$0")
prefix=${PREFIX:-${HOME:?HOME is not set; give --prefix DIR}/.local}
while [ $# -gt 0 ]; do
    case $1 in
        --uninstall) action=uninstall ;;
        --from | --prefix)
            [ $# -gt 1 ] || fail "$1 needs a value"
            if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
            shift
            ;;
        --help)
            usage
            exit
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    shift
done
case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
prefix=${prefix%/}
list=$prefix/share/gleaner/installed
"$action"
