import threading
kept, lock = [], threading.Lock()
def work(seed):
    own = [bytearray((seed * 7919 + i * 263) % 70000 + 1) for i in range(400)]
    for i, block in enumerate(own):
        block[0] = block[-1] = i % 256
    with lock:
        kept.extend(enumerate(own[::2]))
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(kept) == 800
assert all(block[0] == block[-1] == 2 * i % 256 for i, block in kept)
assert sum(map(len, (str(i) for i in range(20000)))) == 88890
big = bytearray(b'x') * (8 << 20)
assert big.count(b'x') == 8 << 20
