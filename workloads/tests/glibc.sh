# title: glibc's malloc tests (Debian's source of glibc), against the machine's own C library
# runs: /programs/
# left out: `tst-interpose-*`, which bring a malloc of their own; `tst-mallocstate` and `tst-compathooks-*`, which need glibc's old symbols
# differs: tst-dynarray-fail: asks for ever smaller blocks until one of 16 bytes is refused, and takes that to mean that there is no block of any size; masu has free blocks of other sizes then
# differs: tst-malloc-backtrace: writes before a block that it has freed and expects that the next `malloc` ends the program, as glibc does
# differs: tst-malloc-stats-cancellation: expects the lines of glibc's report in `malloc_stats`
# differs: tst-mxfast: expects no block in `smblks` of `mallinfo` once `M_MXFAST` is 0; masu has no fast bins and counts its free blocks there
# differs: tst-safe-linking: overwrites free blocks and expects glibc's message
# differs: tst-tcfree2: frees a block twice, others of its size between, and expects glibc's message; masu's normal build stops a block freed twice in a row at once, and such a pair later, if it leaves the cache
case $1 in
make)
    need cc gcc
    source_of glibc
    rm -rf objects programs && mkdir objects programs
    : >source/support/config.h
    # Where glibc was built and installed: nowhere.
    grep -o 'support_[a-z_]*\[\]' source/support/support_paths.c | sed 's/\(.*\)\[\]/const char \1[] = ".";/' | sort -u \
        >source/support/support_paths.new
    mv source/support/support_paths.new source/support/support_paths.c
    # The machine's headers first; of glibc's own only those that the machine has not.
    folders=
    for folder in . include support malloc sysdeps/x86_64 sysdeps/x86 sysdeps/generic; do
        folders="$folders -idirafter source/$folder"
    done
    flags="-w -O1 -g -fno-builtin -D_GNU_SOURCE -DMODULE_NAME=testsuite -DTIMEOUTFACTOR=4 -include limits.h -pthread $folders"
    for hidden in libc_hidden_proto libc_hidden_def libc_hidden_weak; do
        flags="$flags -D$hidden(x)="
    done
    flags="$flags -Dattribute_hidden= -D__always_inline=inline"
    for file in source/support/*.c; do
        name=${file##*/}
        # shellcheck disable=SC2086
        cc $flags -c "$file" -o "objects/${name%.c}.o" 2>/dev/null || echo "not compiled: $name"
    done >not-compiled
    ar rcs libsupport.a objects/*.o
    for file in source/malloc/tst-*.c; do
        name=${file##*/}
        case $name in *interpose*) continue ;; esac
        # shellcheck disable=SC2086
        cc $flags "$file" -o "programs/${name%.c}" libsupport.a -ldl -lm >"programs/${name%.c}.log" 2>&1 || echo "not linked: $name"
    done >not-linked
    ;;
run)
    for program in programs/*; do
        [ -x "$program" ] || continue
        name=${program##*/}
        env LD_PRELOAD="$PRELOAD" timeout 600 "$program" >"programs/$name.out" 2>&1
        case $? in
        0) echo "ok $name" ;;
        77) ;;
        *) echo "not ok $name" ;;
        esac
    done
    ;;
esac
