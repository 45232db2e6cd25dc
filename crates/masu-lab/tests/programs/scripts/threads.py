"""Threads that make objects of many sizes and hand them to one another, and C code that lets go of
the interpreter's lock and allocates at the same time (zlib, hashlib, bz2, sqlite3, subprocess)."""

import bz2
import hashlib
import json
import queue
import random
import re
import sqlite3
import subprocess
import sys
import threading
import zlib

ROUNDS = int(sys.argv[1])
THREADS = 6
queues = [queue.Queue(maxsize=50) for _ in range(THREADS)]
# One place for each thread: `+=` is not atomic.
sums = [[0] * 3 for _ in range(THREADS)]


def produce(me):
    """Makes records and gives each to the next thread."""
    numbers = random.Random(me)
    for count in range(ROUNDS):
        size = int(2 ** numbers.uniform(0, 13))
        record = {
            "name": "x" * size,
            "list": list(range(size % 300)),
            "bytes": bytes(size),
            "nested": [{str(i): i / 3} for i in range(size % 20)],
        }
        queues[(me + 1) % THREADS].put(record)
        if count % 100 == 0:
            packed = zlib.compress(json.dumps(record["nested"]).encode() * 200)
            sums[me][0] += len(bz2.decompress(bz2.compress(zlib.decompress(packed))))
    queues[(me + 1) % THREADS].put(None)


def consume(me):
    """Takes records apart."""
    kept = []
    while (record := queues[me].get()) is not None:
        text = json.dumps([record["list"], record["nested"], record["name"]])
        sums[me][1] += len(json.loads(text)[0]) + len(re.findall(r"\d+", text))
        sums[me][1] += hashlib.sha256(record["bytes"]).digest()[0]
        kept.append(record["bytes"])
        if len(kept) > 400:
            del kept[::2]


def base(me):
    """Keeps a database in memory and starts a process."""
    db = sqlite3.connect(":memory:")
    db.execute("create table t (k integer primary key, v text)")
    db.executemany("insert into t(v) values (?)", ((str(i) * 9,) for i in range(ROUNDS)))
    sums[me][2] += db.execute("select sum(length(v)) from t").fetchone()[0]
    out = subprocess.run(["/bin/echo", str(me)], capture_output=True, check=True).stdout
    sums[me][2] += int(out)


threads = [
    threading.Thread(target=work, args=(me,))
    for me in range(THREADS)
    for work in (produce, consume, base)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

for count in range(ROUNDS // 10):
    short = threading.Thread(target=lambda: sums[0].__setitem__(0, sums[0][0] + len("y" * count)))
    short.start()
    short.join()
print(sums, "all threads are done")
