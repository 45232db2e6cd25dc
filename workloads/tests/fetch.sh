# What every script here has: sources and packages of Debian's, and crates, fetched into the folder that it runs in. The machine's
# own lists of packages stay as they are: apt gets lists and a cache of its own, made from the machine's sources.

apt_here() {
    apt-get -q -o Dir::State::Lists="$APT/lists" -o Dir::Cache="$APT/cache" -o Dir::Etc::SourceList="$APT/sources.list" \
        -o Dir::Etc::SourceParts="$APT/parts" -o Dir::State::Status="$APT/status" -o APT::Sandbox::User=root "$@"
}

apt_lists() {
    [ -e "$APT/done" ] && return
    mkdir -p "$APT/lists/partial" "$APT/cache/archives/partial" "$APT/parts"
    # The distribution's own sources alone: others offer no source packages.
    for file in /etc/apt/sources.list.d/debian.sources; do
        [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$APT/parts/${file##*/}"
    done
    : >"$APT/sources.list"
    # As if nothing were installed: else a package from elsewhere hides the distribution's own.
    : >"$APT/status"
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

# Runs a command that sees the folder `package` laid over the machine's own files, for programs that have fixed places for theirs.
over_usr() {
    local user=
    [ "$(id -u)" = 0 ] || user=--map-root-user
    # shellcheck disable=SC2016
    unshare --mount $user bash -c 'mount -t overlay overlay -o "lowerdir=$PWD/package/usr:/usr" /usr && exec "$@"' bash "$@"
}

# The sources of crates, each given as NAME@VERSION, in the folder `crates`, and of all that they need.
crates_of() {
    need cargo cargo
    [ -e crates ] && return
    mkdir -p fetched/src && : >fetched/src/lib.rs
    {
        printf '[package]\nname = "fetched"\nversion = "0.0.0"\n[workspace]\n[dependencies]\n'
        printf '%s\n' "$@" | sed 's/\(.*\)@\(.*\)/\1 = "=\2"/'
    } >fetched/Cargo.toml
    (cd fetched && cargo vendor --quiet --versioned-dirs ../crates.new >/dev/null) && mv crates.new crates
}

# Makes masu the allocator of a package's tests, where they are built with the feature `with_masu`: the package's folder, and the
# files in it with which its crates begin. A test that brings an allocator of its own is emptied.
with_masu() {
    cd "$1" || exit
    shift
    grep -q '^\[features\]' Cargo.toml || printf '\n[features]\n' >>Cargo.toml
    sed -i 's/^\[features\]$/&\nwith_masu = []/' Cargo.toml
    printf '\n[workspace]\n[dev-dependencies.masu]\npath = "%s"\n' "${script%/workloads/*}/crates/masu" >>Cargo.toml
    for file in "$@"; do
        [ -e "$file" ] || continue
        ! grep -q '#\[global_allocator\]' "$file" || echo 'fn main() {}' >"$file"
        printf '\n#[cfg(all(test, feature = "with_masu"))]\n#[global_allocator]\nstatic MASU: masu::Masu = masu::Masu::new();\n' >>"$file"
    done
    cd "$OLDPWD" || exit
}

# `cargo test` for the target $1 and with the further arguments, under masu if that is in PRELOAD. An option of masu's that is set
# makes it say so, in each program that has it.
rust_tests() {
    local target=$1
    shift
    case ${PRELOAD-} in *libmasu*) set -- "$@" --features with_masu ;; esac
    MASU_VERBOSE=2 CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR="$PWD/target" timeout 2400 \
        cargo test --tests --target "$target" --no-fail-fast "$@" 2>&1 | tee -a log | awk -v witness="${WITNESS-/dev/null}" '
            function end() { if (program != "") print program "\t" allocator >>witness }
            /^ +Running / {
                end(); allocator = "libc"; program = $NF; gsub(/[()]/, "", program)
                name = program; sub(/.*\//, "", name); sub(/-[0-9a-f]+$/, "", name)
            }
            /^masu: / { allocator = "libmasu.rlib" }
            /^test .* \.\.\. ok$/ { print "ok " name ": " $2 }
            /^test .* \.\.\. FAILED$/ { print "not ok " name ": " $2 }
            END { end() }'
    return "${PIPESTATUS[0]}"
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
