# title: Lua's official tests (`testes` of Lua 5.4.7, in the wheel source of lupa 2.4), each script by itself, in the plain interpreter and in that with Lua's own checks
# runs: /source/lua
# left out: `heavy.lua`, which fills the memory of the machine; `all.lua`, which runs the others
case $1 in
make)
    need pip3 python3-pip
    need cc gcc
    [ -e lupa-2.4.tar.gz ] || pip3 -q download --no-deps --no-binary lupa lupa==2.4 || exit
    rm -rf source && tar -xzf lupa-2.4.tar.gz --strip-components=2 lupa-2.4/third-party/lua54 && mv lua54 source
    make -s -C source/testes/libs
    cc -w -O2 -DLUA_USE_LINUX source/onelua.c -o plain -Wl,-E -lm -ldl
    # Its own checks count what is alive, and put marks around each block.
    cc -w -O1 -DLUA_USE_LINUX '-DLUA_USER_H="ltests.h"' source/l[!ut]*.c source/lt[!e]*.c source/lu[!a]*.c source/ltests.c source/lua.c -o checked -Wl,-E -lm -ldl
    ;;
run)
    for interpreter in plain checked; do
        cp "$interpreter" source/lua
        for file in source/testes/*.lua; do
            name=${file##*/}
            script="dofile('$name')"
            case $name in
            heavy.lua | all.lua) continue ;;
            big.lua) script="local f = coroutine.wrap(loadfile('big.lua')); assert(f() == 'b' and f() == 'a')" ;;
            esac
            # Its input is nothing that can be sought in.
            if : | (cd source/testes && env LD_PRELOAD="$PRELOAD" timeout 300 ../lua -W -e "$script") >"$interpreter-$name.out" 2>&1; then
                echo "ok $interpreter: $name"
            else
                echo "not ok $interpreter: $name"
            fi
        done
    done
    ;;
esac
