# title: PostgreSQL's regression tests (Debian's source of postgresql-15, its schedule of `make check`), run by Debian's server
# runs: /bin/postgres
case $1 in
make)
    [ -x /usr/lib/postgresql/15/bin/postgres ] || lacks 'PostgreSQL 15 (postgresql-15)'
    need cc gcc
    need setpriv util-linux
    files_of postgresql-server-dev-15
    source_of postgresql-15
    cp /usr/lib/postgresql/15/lib/refint.so /usr/lib/postgresql/15/lib/autoinc.so .
    # The source's headers are of the server's version, the package's may be newer: those that a build makes are the same.
    cc -w -O2 -fPIC -shared -Isource/src/include -Ipackage/usr/include/postgresql/15/server source/src/test/regress/regress.c -o regress.so
    ;;
run)
    # The server does not run as root, and where it may not reach this folder it gets one of its own.
    folder=$(mktemp -d /tmp/masu-postgresql-XXXXXX)
    mkdir "$folder/out" && cp -r source/src/test/regress "$folder/" && cp ./*.so "$folder/regress/"
    cp /usr/lib/postgresql/15/lib/pgxs/src/test/regress/pg_regress "$folder/"
    # shellcheck disable=SC2086
    cp ${PRELOAD//:/ } "$folder/" && PRELOAD=$(printf '%s\n' ${PRELOAD//:/ } | sed "s|.*/|$folder/|" | paste -sd:)
    : >"$folder/witnessed"
    chmod 755 "$folder" && chown -R nobody "$folder"
    (
        cd "$folder" && setpriv --reuid nobody --clear-groups env LD_PRELOAD="$PRELOAD" WITNESS="$folder/witnessed" timeout 1800 \
            ./pg_regress --bindir=/usr/lib/postgresql/15/bin --temp-instance="$folder/server" --inputdir="$folder/regress" \
            --outputdir="$folder/out" --dlpath="$folder/regress" --max-concurrent-tests=20 --port=54329 \
            --schedule="$folder/regress/parallel_schedule"
    ) >log 2>&1
    cp "$folder/out/regression.diffs" . 2>/dev/null
    cat "$folder/witnessed" >>"$WITNESS"
    rm -rf "$folder"
    sed -nE -e 's/^(test)? +(\S+) +\.\.\. ok .*/ok \2/p' -e 's/^(test)? +(\S+) +\.\.\. (FAILED|failed).*/not ok \2/p' log
    ;;
esac
