// Workers (an engine and a heap each), buffers outside the engine's heap, compression on the
// thread pool, files and processes.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const zlib = require('node:zlib');
const crypto = require('node:crypto');
const { promisify } = require('node:util');
const { execFile } = require('node:child_process');
const fs = require('node:fs/promises');

if (!isMainThread) {
  const seen = new Map();
  for (let i = 0; i < 4000; i++) {
    const buffer = Buffer.alloc((i * 7919) % 20000, i & 0xff);
    seen.set(`key ${i % 500}`, { buffer, text: buffer.toString('base64').slice(0, 40) });
  }
  const digest = crypto.createHash('sha256');
  for (const [key, { buffer, text }] of seen) digest.update(key).update(buffer).update(text);
  const big = new Uint8Array(3_000_000).fill(workerData);
  parentPort.postMessage({ digest: digest.digest('hex'), big }, [big.buffer]);
} else {
  const run = (id) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(__filename, { workerData: id });
      worker.on('error', reject);
      worker.on('message', ({ digest, big }) => {
        const sum = big.reduce((sum, byte) => sum + byte, 0);
        worker.on('exit', () => resolve(`${digest} ${sum}`));
      });
    });
  (async () => {
    for (let round = 0; round < Number(process.argv[2]); round++) {
      const results = await Promise.all([1, 2, 3, 4].map((id) => run(id + round)));
      console.log(results.join('\n'));
    }
    const text = Buffer.from(JSON.stringify(Array.from({ length: 50000 }, (_, i) => ({ i, x: i / 7 }))));
    const packed = await Promise.all([1, 5, 9].map((level) => promisify(zlib.gzip)(text, { level })));
    const brotli = await promisify(zlib.brotliCompress)(text, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } });
    console.log(packed.map((bytes) => bytes.length), brotli.length);
    for (const bytes of packed) console.log((await promisify(zlib.gunzip)(bytes)).equals(text));
    const key = await promisify(crypto.scrypt)('a word', 'salt', 32);
    console.log(key.toString('hex'));
    await fs.writeFile('produced.json', text);
    console.log((await fs.readFile('produced.json')).length);
    const { stdout } = await promisify(execFile)('/usr/bin/sort', ['-r', __filename]);
    console.log(stdout.length, 'workers are done');
  })();
}
