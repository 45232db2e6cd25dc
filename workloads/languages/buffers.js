// Packets in buffers outside V8's heap: compressed and decompressed by zlib, some kept for a while.
const zlib = require("zlib");
const packets = Number(process.argv[2]);
const kept = [];
let bytes = 0;
for (let n = 0; n < packets; n++) {
  const packet = Buffer.allocUnsafeSlow(2000 + (n * 37) % 30000).fill(`record ${n % 100};`);
  const small = zlib.deflateSync(packet, { level: 1 });
  bytes += zlib.inflateSync(small).length;
  kept.push(small, packet);
  if (kept.length > 400) kept.splice(0, 200);
}
console.log(bytes);
