"""Threads that turn records into columns of numpy and sum them up: objects beside an extension's memory.

For a Python without a global lock (3.13t and later): python3.13t threads.py ROUNDS THREADS
"""

import sys
import threading

import numpy


def work(rounds, seed, sums):
    total = 0
    for round in range(rounds):
        count = 200 + (seed * 7919 + round * 104729) % 4000
        records = [{"id": i, "name": f"order {i}", "price": i * 37 % 1000} for i in range(count)]
        prices = numpy.fromiter((record["price"] for record in records), dtype=numpy.float64)
        lengths = numpy.array([len(record["name"]) for record in records])
        cheap = prices[prices < 500]
        scaled = numpy.outer(cheap[:64], lengths[:400]) * 1.07
        total += int(scaled.sum()) + int(numpy.sort(prices * 1.19).cumsum()[-1])
    sums[seed] = total


rounds, threads = int(sys.argv[1]), int(sys.argv[2])
sums = [0] * threads
started = [threading.Thread(target=work, args=(rounds, seed, sums)) for seed in range(threads)]
for thread in started:
    thread.start()
for thread in started:
    thread.join()
print(sums)
