# title: SQLite's own tests (Debian's source of sqlite3, run by its `testfixture`): the scripts of queries, changes, functions, threads and refused memory
# runs: /testfixture
# left out: extensions, journals, and scripts that run for minutes
case $1 in
make)
    need tclsh tcl
    need make make
    need cc gcc
    [ -e /usr/include/tcl8.6/tcl.h ] || lacks 'the headers of Tcl (tcl8.6-dev)'
    source_of sqlite3
    [ -x build/testfixture ] && return
    mkdir -p build && cd build || exit
    ../source/configure --with-tcl=/usr/lib/tcl8.6 --disable-shared >../make.log 2>&1 &&
        make CFLAGS='-O1 -g1 -w' testfixture >>../make.log 2>&1
    ;;
run)
    rm -rf scratch && mkdir scratch && cd scratch || exit
    for file in ../source/test/{blob,collate,delete,expr,func,incrblob,index,insert,join,json,malloc,mem,pragma,savepoint,select,thread,trigger,update,view,where,window,with}*.test; do
        name=${file##*/}
        # Those that run for minutes.
        case $name in incrblob_err* | index5* | indexfault* | joinD* | malloc.* | mallocAll* | mallocK* | memjournal2* | savepoint[46]* | savepointfault* | select9* | where8* | wherefault* | windowfault* | with1*) continue ;; esac
        env LD_PRELOAD="$PRELOAD" timeout 900 ../build/testfixture "$file" >out 2>&1
        status=$?
        # Where each request in turn is refused, the number of cases is that of requests, which depends on how much room a
        # block has; so those count as one.
        case $name in malloc* | *fault*) numbers='s/[0-9]+/N/g' ;; *) numbers= ;; esac
        sed -nE -e 's/^\.*(\S+)\.\.\. Ok$/+ \1/p' -e 's/^! (\S+) expected: .*/- \1/p' out | sed -E "$numbers" |
            sed -e "s/^+ /ok ${name%.test}: /" -e "s/^- /not ok ${name%.test}: /"
        # What ended early, and by what.
        if [ $status = 0 ] || grep -q '^!' out; then echo "ok $name"; else echo "not ok $name"; fi
    done
    ;;
esac
