#!/bin/sh
# mariadb-tables.sh MARIADBD FOLDER: makes sysbench's tables in FOLDER, unless they are there. The server is reachable by a socket in the
# folder alone, and gone when this ends.
set -eu
server=$1 data=$2
[ -e "$data.complete" ] && exit 0
rm -rf "$data"
# A folder in the data folder is a database.
mkdir -p "$data/asked"
# The path of a socket has to be short.
cd "$data" && data=$(pwd)
# Should this be killed, nothing is left that could end the server; setpriv, where it is installed, has the kernel see to it.
watched=
setpriv --pdeathsig TERM true 2>/dev/null && watched='setpriv --pdeathsig TERM'
$watched "$server" --no-defaults --user=root --datadir="$data" --socket=socket --pid-file="$data.pid" --skip-networking \
    --skip-grant-tables --skip-log-bin --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=0 2>"$data.log" &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true' EXIT
trap 'exit 1' HUP INT TERM
tries=0
while [ ! -S socket ]; do
    tries=$((tries + 1))
    kill -0 "$pid" 2>/dev/null || { echo "the server ended: $(tail -n 1 "$data.log")" >&2; exit 1; }
    [ "$tries" -lt 600 ] || { echo "the server was not ready within a minute" >&2; exit 1; }
    sleep 0.1
done
sysbench oltp_read_only --db-driver=mysql --mysql-socket=socket --mysql-user=root --mysql-db=asked --mysql-ssl=off \
    --tables=4 --table-size=20000 --rand-seed=1 prepare >"$data.sysbench" 2>&1 ||
    { echo "sysbench: $(tail -n 1 "$data.sysbench")" >&2; exit 1; }
kill "$pid"
wait "$pid" || true
: >"$data.complete"
