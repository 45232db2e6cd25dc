# title: The tests of the crates bytes, crossbeam-channel, crossbeam-deque, crossbeam-epoch, indexmap, rayon, rayon-core, slab and smallvec, in programs that take the system's malloc
# runs: /debug/deps/
# left out: examples in comments
case $1 in
make)
    crates_of bytes@1.12.1 crossbeam-channel@0.5.17 crossbeam-deque@0.8.8 crossbeam-epoch@0.9.21 indexmap@2.14.2 rayon@1.12.0 \
        rayon-core@1.13.0 slab@0.4.12 smallvec@1.16.5 || exit
    for name in bytes crossbeam-{channel,deque,epoch} indexmap rayon rayon-core slab smallvec; do
        for crate in crates/"$name"-[0-9]*; do
            grep -q '^\[workspace\]' "$crate/Cargo.toml" || printf '\n[workspace]\n' >>"$crate/Cargo.toml"
            CARGO_PROFILE_DEV_DEBUG=0 RUSTFLAGS=--cap-lints=allow CARGO_TARGET_DIR="$PWD/target" \
                cargo test --tests --no-run --manifest-path "$crate/Cargo.toml" >"$name.log" 2>&1 || { tail "$name.log" && exit 1; }
            sed -nE "s|^ *Executable .*\\((.*)\\)\$|$crate $PWD/\\1|p" "$name.log"
        done
    done >programs
    [ -s programs ]
    ;;
run)
    while read -r crate program; do
        name=${program##*/}
        name=${crate#crates/}/${name%-*}
        (cd "$crate" && env LD_PRELOAD="$PRELOAD" timeout 600 "$program") >out 2>&1
        status=$?
        sed -nE -e "s|^test (\\S+)( - should panic)? \\.\\.\\. ok\$|ok $name: \\1|p" \
            -e "s|^test (\\S+)( - should panic)? \\.\\.\\. FAILED\$|not ok $name: \\1|p" out
        # What ended early.
        if [ $status = 0 ]; then echo "ok $name"; else echo "not ok $name"; fi
    done <programs
    ;;
esac
