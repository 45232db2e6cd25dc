# title: CPython's regression tests (Debian's python3.11), every allocation by malloc
# runs: /usr/bin/python3.11
# left out: modules that wait for networks, clocks or terminals, or that build C
case $1 in
make)
    need /usr/bin/python3.11 python3.11
    files_of libpython3.11-testsuite
    cp -rn /usr/lib/python3.11/test package/usr/lib/python3.11/
    ;;
run)
    modules=$(cd package/usr/lib/python3.11/test && ls test_[a-z]*.py | sed 's/\.py$//' | grep -vE \
        '^test_(asyn.*|c_analyzer|cext|check_c.*|clinic|compileall|concurrent.*|cppext|dbm.*|dist.*|docxmlrpc|ensurepip|epoll|ftplib|gdb|httplib|httpservers|idle|imaplib|kqueue|largefile|lib2to3|mailbox|multiprocess.*|nntplib|ossaudio.*|peg_.*|poplib|pty|pydoc|regrtest|robotparser|selectors|signal|smtp.*|socket.*|ssl|subprocess|tcl|telnetlib|tix|tk.*|tokenize|tools|ttk.*|turtle|unparse|url.*|venv|wait[34]|winconsole.*|wsgiref|xmlrpc|zipfile64|zoneinfo|crashers|posix|os|shutil|support|tarfile|decimal|statistics|threadsignals|fork1|popen|cmd_line.*|curses|devpoll|poll|faulthandler|import|site|trace|unicodedata|ucn|codecmaps.*|bz2|lzma|zlib|time|timeout|nis|readline|sundry|buffer|capi|embed|ioctl|pdb|doctest.*|inspect|typing|logging|thread.*|queue|sched|io|fileio|zipfile|pkg.*|runpy|zipimport.*|tempfile|unicode_identifiers|json|xml_.*|email)$')
    rm -f result.xml
    # shellcheck disable=SC2086
    env LD_PRELOAD="$PRELOAD" PYTHONMALLOC=malloc PYTHONPATH="$PWD/package/usr/lib/python3.11" \
        timeout 2400 /usr/bin/python3.11 -m test -j2 --timeout 300 --junit-xml "$PWD/result.xml" $modules >log 2>&1
    /usr/bin/python3.11 - result.xml <<'PYTHON'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    kinds = {child.tag for child in case}
    if "skipped" not in kinds and case.get("result") != "skipped":
        failed = kinds & {"error", "failure"}
        print("not ok" if failed else "ok", ascii(case.get("name")).strip("'").replace(" ", "_"))
PYTHON
    ;;
esac
