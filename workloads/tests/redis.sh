# title: Redis's own tests (Debian's source of redis, built with `MALLOC=libc`): 36 units of data types, scripts, transactions and memory
# runs: /redis-server
# left out: units that wait for other servers, clocks or descriptors, and cases marked as slow or as needing the debugger
case $1 in
make)
    need tclsh tcl
    need make make
    need cc gcc
    source_of redis
    make -C source/src -j2 MALLOC=libc OPTIMIZATION=-O1 DEBUG= USE_SYSTEMD=no redis-server redis-cli redis-benchmark redis-sentinel >make.log 2>&1
    ;;
run)
    units='unit/acl unit/auth unit/bitfield unit/bitops unit/dump unit/expire unit/functions unit/geo unit/hyperloglog unit/info
        unit/introspection unit/introspection-2 unit/keyspace unit/latency-monitor unit/lazyfree unit/limits unit/memefficiency
        unit/multi unit/networking unit/protocol unit/pubsub unit/querybuf unit/quit unit/scan unit/scripting unit/slowlog
        unit/sort unit/tracking unit/type/hash unit/type/incr unit/type/list unit/type/set unit/type/stream
        unit/type/stream-cgroups unit/type/string unit/type/zset'
    (
        cd source || exit
        options=
        for unit in $units; do options="$options --single $unit"; done
        # shellcheck disable=SC2086
        env LD_PRELOAD="$PRELOAD" timeout 1800 tclsh tests/test_helper.tcl --clients 2 --tags '-slow -needs:debug' $options
    ) >log 2>&1
    sed 's/\x1b\[[0-9;]*m//g' log | sed -nE -e 's/^\[ok\]: (.*) \([0-9]+ ms\)$/ok \1/p' -e 's/^\[(err|exception|timeout)\]: (.*)$/not ok \2/p'
    ;;
esac
