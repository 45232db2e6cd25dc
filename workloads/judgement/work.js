// Objects, maps and strings, collected by the engine's own collector.
const records = JSON.parse(require('fs').readFileSync('orders.json', 'utf8'));
let total = 0;
for (let round = 0; round < 2; round++) {
  const groups = new Map();
  for (const record of records) {
    const key = `${record.customer.name}-${round}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push({ ...record, sum: record.lines.reduce((sum, line) => sum + line.price * line.count, 0) });
  }
  for (const list of groups.values()) total += JSON.stringify(list.sort((a, b) => a.sum - b.sum)).length;
}
console.log(total);
