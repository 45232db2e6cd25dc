# title: Ruby's own tests (Debian's source of ruby3.1, 22 files of `test/ruby`, and those of three libraries), run by Debian's ruby3.1
# runs: /ruby3.1
# left out: the other files, for their length
case $1 in
make)
    for part in ruby3.1 libruby3.1 ruby rubygems-integration; do
        [ -e "package-$part" ] || { files_of $part && : >"package-$part"; }
    done
    source_of ruby3.1
    ;;
run)
    folder=$PWD/package/usr
    tests=
    for name in array comparable complex enumerator fiber float gc gc_compact hash integer iterator lambda lazy_enumerator m17n \
        marshal numeric objectspace pack proc range rational regexp; do
        tests="$tests ruby/test_$name.rb"
    done
    tests="$tests digest erb test_set.rb"
    (
        cd source || exit
        # shellcheck disable=SC2086
        env LD_PRELOAD="$PRELOAD" LD_LIBRARY_PATH="$folder/lib/x86_64-linux-gnu" \
            RUBYLIB="$folder/lib/ruby/3.1.0:$folder/lib/x86_64-linux-gnu/ruby/3.1.0:$folder/lib/ruby/vendor_ruby" timeout 2400 \
            "$folder/bin/ruby3.1" -Itool/lib -W0 test/runner.rb --ruby="$folder/bin/ruby3.1" --excludes-dir=test/excludes --subprocess-timeout-scale=20 -v --test-order=sorted $tests
    ) >log 2>&1
    sed -nE 's/^\[ *[0-9]+\/[0-9]+\] (\S+) = .*/ok \1/p' log
    grep -A1 -E '^ +[0-9]+\) (Failure|Error):' log | sed -nE 's/^(\S+#[^: ]+).*/not ok \1/p'
    ;;
esac
