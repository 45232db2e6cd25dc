#!/bin/sh
# Runs a program of aarch64 under a kernel of its own, whose OS pages are as long as one says: `cargo xtask boot`.
#
# qemu emulates a whole machine, so the kernel there is a real one: Debian's source with little more than tests ask of a
# kernel (`kernel.config`), compiled once for each size of an OS page. The output, the errors and the end of the program in
# the guest are this command's own. The program and what it needs lie at the paths that they have here.
set -eu

usage='boot [OPTION]... PROGRAM [ARGUMENT]...
  --pages KIB       OS pages of 4, 16 or 64 KiB (needed; the first time takes about 10 minutes)
  --env NAME=VALUE  a variable for the program, beside PATH and those that begin with MASU_, MALLOC_ or RUST_; repeats
  --file PATH       a file that the program needs beside itself and the files among its arguments; repeats
  --folder PATH     an empty folder for the program; repeats'

fail() {
    echo "boot: $*" >&2
    exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
kernels=$here/../../target/kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/boot" "$root/bin" "$root/lib" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$kernels"

# Puts a file where it lies here.
take() {
    cp -L --parents "$(realpath -s "$1")" "$root" || fail "the guest needs $1"
}

# Compiles the kernel for this size of an OS page; what the kernel's own rules drop of the configuration is an error here.
compile() {
    source=$kernels/source build=$kernels/build-$pages
    mkdir -p "$source" "$build"
    tar --extract --strip-components=1 --file /usr/src/linux-source-6.1.tar.xz --directory "$source"
    set -- make --silent -C "$source" O="$build" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
    "$@" KCONFIG_ALLCONFIG="$work/config" allnoconfig
    dropped=$(grep '^CONFIG' "$work/config" | grep -vxFf "$build/.config") &&
        fail "the kernel's own rules drop $dropped: what does it depend on?"
    "$@" -j"$(nproc)" Image
    cp "$build/arch/arm64/boot/Image" "$kernels/image-$pages"
    cp "$work/config" "$kernels/config-$pages"
    rm -r "$build" "$source"
}

# The first process of a guest, built by rustc alone.
init() {
    cmp -s "$here/init.rs" "$kernels/init.rs" && return
    ${RUSTC:-rustc} --edition 2024 --target aarch64-unknown-linux-musl --crate-name init -C linker=rust-lld \
        -C opt-level=1 -C panic=abort -C strip=symbols -o "$kernels/init" "$here/init.rs"
    cp "$here/init.rs" "$kernels/init.rs"
}

pages=
env -0 | grep -z -E '^(PATH=|MASU_|MALLOC_|RUST_)' > "$root/boot/variables" || true
while :; do
    case ${1-} in
        --pages) pages=$2 ;;
        --env) printf '%s\0' "$2" >> "$root/boot/variables" ;;
        --file) take "$2" ;;
        --folder) mkdir -p "$root$(realpath -s "$2")" ;;
        -h | --help) echo "$usage" && exit ;;
        '') fail "name a program: $usage" ;;
        -*) fail "no option $1
$usage" ;;
        *) break ;;
    esac
    shift 2
done
case $pages in 4 | 16 | 64) ;; *) fail "there are kernels with OS pages of 4, 16 and 64 KiB: say which by --pages" ;; esac

program=$(realpath -s "$1")
shift
printf %s "$program" > "$root/boot/program"
printf %s "$PWD" > "$root/boot/folder"
: > "$root/boot/arguments"
[ $# -eq 0 ] || printf '%s\0' "$@" > "$root/boot/arguments"
mkdir -p "$root$PWD"
take "$program"
for argument; do
    case $argument in /*) [ ! -f "$argument" ] || take "$argument" ;; esac
done
# What programs in C and C++ load.
for name in ld-linux-aarch64.so.1 libc.so.6 libm.so.6 libgcc_s.so.1 libstdc++.so.6 libpthread.so.0 libdl.so.2 librt.so.1; do
    cp -L "/usr/aarch64-linux-gnu/lib/$name" "$root/lib"
done

{ echo "CONFIG_ARM64_${pages}K_PAGES=y"; cat "$here/kernel.config"; } > "$work/config"
exec 9> "$kernels/lock"
flock 9
cmp -s "$work/config" "$kernels/config-$pages" || compile >&2
init
flock -u 9
exec 9>&-
cp "$kernels/init" "$root/init"
# Programs under test start it as the smallest program there is.
cp "$kernels/init" "$root/bin/true"
(cd "$root" && find . | cpio -o -H newc --quiet > "$work/files")

# The first process says things behind the byte 036, which no text has; the guest's terminal ends lines by two bytes.
qemu-system-aarch64 -machine virt -cpu max -smp 2 -m 4096 -accel tcg,thread=multi -no-reboot -nodefaults \
    -display none -monitor none -serial stdio -kernel "$kernels/image-$pages" -initrd "$work/files" \
    -append 'console=ttyAMA0 loglevel=1 panic=-1 random.trust_cpu=on' < /dev/null |
    LC_ALL=C awk -v said="$work/said" '
        BEGIN { RS = "\r\n"; to = "/dev/stdout" }
        {
            mark = index($0, "\036")
            # Behind the end comes the kernel, which says that it powers off.
            if (!ended) printf "%s", mark ? substr($0, 1, mark - 1) : $0 "\n" > to
            fflush(to)
            if (!mark) next
            word = substr($0, mark + 1)
            print word > said
            if (word == "errors") to = "/dev/stderr"
            if (word ~ /^(status|signal|error) /) ended = 1
        }'
grep -qx "page $((pages << 10))" "$work/said" || fail "the guest has no OS pages of $pages KiB: $(cat "$work/said")"
end=$(tail -n 1 "$work/said")
rm -r "$work"
case $end in
    "status "*) exit "${end#* }" ;;
    "signal "*) ulimit -c 0 && kill -"${end#* }" $$ ;;
    *) fail "the guest broke off at '$end': see above" ;;
esac
