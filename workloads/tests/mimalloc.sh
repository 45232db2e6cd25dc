# title: mimalloc's stress test (Debian's source of mimalloc), built for the standard malloc
# runs: /stress
# left out: `test-api`, which asks for functions that mimalloc alone has
case $1 in
make)
    need cc gcc
    source_of mimalloc
    cc -w -O2 -g -DUSE_STD_MALLOC -pthread -Isource/include source/test/test-stress.c -o stress
    ;;
run)
    for threads in 1 4 16; do
        if env LD_PRELOAD="$PRELOAD" timeout 600 ./stress "$threads" 20 10 >/dev/null 2>&1; then
            echo "ok stress, $threads threads"
        else
            echo "not ok stress, $threads threads"
        fi
    done
    ;;
esac
