# title: Perl's core tests (Debian's source of perl, the folders of `t`), run by Debian's perl
# runs: /bin/perl
# left out: `t/porting` (the source tree's own rules), `t/bigmem` (8 GiB of memory), most of `re` (long, and of regular expressions alone)
case $1 in
make)
    need perl perl
    [ -e /usr/share/perl/5.36/Test/More.pm ] || lacks "Perl's modules (perl-modules-5.36)"
    source_of perl
    # The tests expect an interpreter and its library in the source tree.
    ln -sf /usr/bin/perl source/perl && ln -sf /usr/bin/perl source/t/perl
    for folder in /usr/lib/x86_64-linux-gnu/perl-base /usr/lib/x86_64-linux-gnu/perl/5.36 /usr/share/perl/5.36; do
        cp -rnL $folder/. source/lib/
    done
    ;;
run)
    (
        cd source/t || exit
        tests=$(printf '%s\n' {base,cmd,comp,io,op,opbasic,uni,mro,lib}/*.t re/{pat,pat_advanced,qr,qr_gc,reg_eval,reg_mesg,regexp,subst,rxcode}.t)
        # shellcheck disable=SC2086
        env LD_PRELOAD="$PRELOAD" timeout 2400 ./perl -I../lib TEST $tests
    ) >log 2>&1
    sed -nE -e 's/^(t\/\S+) \.+ ?ok$/ok \1/p' -e 's/^(t\/\S+) \.+ ?(FAILED|failed).*/not ok \1/p' log
    ;;
esac
