# What every script here has: sources and packages of Debian's, fetched into the folder that it runs in. The machine's own lists
# of packages stay as they are: apt gets lists and a cache of its own, made from the machine's sources.

apt_here() {
    apt-get -q -o Dir::State::Lists="$APT/lists" -o Dir::Cache="$APT/cache" -o Dir::Etc::SourceList="$APT/sources.list" \
        -o Dir::Etc::SourceParts="$APT/parts" -o APT::Sandbox::User=root "$@"
}

apt_lists() {
    [ -e "$APT/done" ] && return
    mkdir -p "$APT/lists/partial" "$APT/cache/archives/partial" "$APT/parts"
    # The distribution's own sources alone: others offer no source packages.
    for file in /etc/apt/sources.list.d/debian.sources; do
        [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$APT/parts/${file##*/}"
    done
    : >"$APT/sources.list"
    if [ -e /etc/apt/sources.list ]; then
        sed -n 's/^deb //p' /etc/apt/sources.list | while read -r line; do
            printf 'deb %s\ndeb-src %s\n' "$line" "$line"
        done >"$APT/sources.list"
    fi
    apt_here update && : >"$APT/done"
}

# The unpacked and patched source of a package, in the folder `source`.
source_of() {
    [ -e source ] && return
    apt_lists
    # A mirror may lack what an update brought: the release's own version then.
    apt_here source --download-only "$1" || apt_here source --download-only "$1/$(. /etc/os-release && echo "$VERSION_CODENAME")"
    dpkg-source --no-check -x ./"$1"_*.dsc source
}

# A package's files, in the folder `package`.
files_of() {
    apt_lists
    apt_here download "$1"
    dpkg-deb -x ./"$1"_*.deb package
}

# Ends a script because the machine lacks something: that suite is left out.
lacks() {
    echo "needs $1"
    exit 77
}

# The program $1, which the package $2 has.
need() {
    command -v "$1" >/dev/null || lacks "the program $1 (package $2)"
}
