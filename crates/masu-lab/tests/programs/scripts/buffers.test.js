'use strict';
const { test } = require('node:test');
const assert = require('node:assert');

test('a buffer grows and keeps its contents', () => {
  let buffer = Buffer.from([1]);
  for (let i = 0; i < 20; i++) buffer = Buffer.concat([buffer, buffer]);
  assert.strictEqual(buffer.length, 1 << 20);
  assert.ok(buffer.every((byte) => byte === 1));
});

test('a buffer asked for zeroed is zero', () => {
  for (let i = 0; i < 2000; i++) {
    Buffer.allocUnsafeSlow(9000).fill(255);
    assert.ok(!Buffer.alloc(9000).includes(255));
  }
});

test('a resizable buffer grows in place', () => {
  const buffer = new ArrayBuffer(1000, { maxByteLength: 1 << 22 });
  const view = new Uint8Array(buffer);
  view[999] = 7;
  buffer.resize(1 << 22);
  assert.strictEqual(view[999], 7);
  assert.strictEqual(view[(1 << 22) - 1], 0);
});
