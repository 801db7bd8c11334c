// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
// Parses records, indexes, sorts and serializes them, and keeps some in buffers outside of the heap.
'use strict';
const fs = require('fs');

const records = fs.readFileSync(process.argv[2], 'utf8').trimEnd().split('\n').map(JSON.parse);
let total = 0;
for (let round = 0; round < 4; ++round) {
  const byCity = new Map();
  for (const record of records) {
    if (!byCity.has(record.place.city)) byCity.set(record.place.city, []);
    byCity.get(record.place.city).push({...record, round});
  }
  for (const [city, group] of byCity) {
    group.sort((one, other) => one.place.x - other.place.x);
    const buffer = Buffer.from(JSON.stringify(group));
    total += buffer.length + city.length + new Uint8Array(buffer).subarray(0, 64).length;
  }
}
console.log(total);
