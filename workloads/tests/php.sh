# title: PHP's own tests (Debian's source of php8.2, those of classes, closures, generators, garbage and of `ext/spl`), run by Debian's php8.2 with opcache and its modules opened with `RTLD_DEEPBIND`
# runs: /php8.2
# left out: the other folders, for their length
case $1 in
make)
    for part in php8.2-cli php8.2-common php8.2-opcache libargon2-1 libsodium23 libpcre2-8-0 libedit2 libxml2 libssl3 libicu72 libbsd0 libmd0; do
        [ -e "package-$part" ] || { files_of $part && : >"package-$part"; }
    done
    source_of php8.2
    ;;
run)
    folder=$PWD/package/usr
    modules=$(echo "$folder"/lib/php/2*)
    (
        cd source || exit
        # shellcheck disable=SC2086
        env LD_PRELOAD="$PRELOAD" LD_LIBRARY_PATH="$folder/lib/x86_64-linux-gnu" TEST_PHP_EXECUTABLE="$folder/bin/php8.2" NO_INTERACTION=1 \
            timeout 2400 "$folder/bin/php8.2" -n run-tests.php -n -q -j2 --no-color --set-timeout 120 -d extension_dir="$modules" \
            -d zend_extension=opcache.so -d opcache.enable_cli=1 -d extension=ctype.so -d extension=tokenizer.so -d extension=iconv.so \
            tests/classes Zend/tests/closures Zend/tests/generators Zend/tests/gc_0*.phpt ext/spl/tests
    ) >log 2>&1
    # A line of progress ends with a carriage return alone.
    tr '\r' '\n' <log | sed -nE 's/^ *PASS .*\[(.*\.phpt)\].*$/ok \1/p; s/^ *FAIL .*\[(.*\.phpt)\].*$/not ok \1/p' | sort -u
    ;;
esac
