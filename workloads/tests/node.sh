# title: Node's own tests (Debian's source of nodejs, the files of `test/parallel` on buffers, blobs, messages, streams, worker threads, crypto, zlib and the heap), run by Debian's node
# runs: /usr/bin/node
# left out: the other files
case $1 in
make)
    need unshare util-linux
    for part in nodejs libnode108 libc-ares2 libuv1 libnghttp2-14 libicu72 node-acorn node-xtend node-undici node-busboy node-cjs-module-lexer; do
        [ -e "package-$part" ] || { files_of $part && : >"package-$part"; } || exit
    done
    source_of nodejs || exit
    over_usr node --version >version || lacks 'mounts of its own, to lay packages over /usr'
    ;;
run)
    rm -rf out && mkdir out
    one() {
        local name=${1##*/} flags
        flags=$(sed -n 's,^// Flags: *,,p' "$1")
        # shellcheck disable=SC2086
        env LD_PRELOAD="$PRELOAD" timeout 600 /usr/bin/node $flags "$1" >"out/$name" 2>&1
        case $?/$(grep -c '^1\.\.0 # Skipped' "out/$name") in
        0/0) echo "ok $name" ;;
        0/*) ;;
        *) echo "not ok $name" ;;
        esac
    }
    export -f one
    printf '%s\n' source/test/parallel/test-{arraybuffer,blob,broadcastchannel,buffer,crypto-{cipher,from,hash,hmac,keygen,oneshot,pbkdf2,random,scrypt,secret,stream,worker,x509},gc,heap,memory,message,process-memory,stream-{pipeline,readable,transform,writable},string-decoder,structuredClone,v8,whatwg-*stream,worker,zlib}*.{js,mjs} |
        grep -v '\*' | over_usr xargs -P 2 -I FILE --process-slot-var=TEST_THREAD_ID bash -c 'one FILE'
    ;;
esac
