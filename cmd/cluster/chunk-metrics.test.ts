import { expect, test } from 'vitest';
import { makePlacement } from '../../src/cluster/placement.ts';
import { seeDisks } from '../../src/cluster/see-disks.ts';
import { countedTelemetry } from '../../tests/support/counted-telemetry.ts';
import { memberOf } from '../../tests/support/disk-placer.ts';
import { placedDisks } from '../../tests/support/placed-disks.ts';
import { measureDisks } from './chunk-metrics.ts';

const disks = placedDisks({ zones: 3, capacityOf: (at) => 1000 + at });
const map = makePlacement({ disks, copies: 3 });
const [one = '', two = ''] = disks.map(({ id }) => id);

test('disks as whoever places them sees them, and nothing of them elsewhere', async () => {
  const { telemetry, refused, linesOf } = countedTelemetry();
  measureDisks(telemetry, seeDisks(map, disks.slice(1).map(memberOf)));
  expect(await linesOf('holdfast_disk_state')).toEqual([
    `{disk="${one}",node="node-0-0",state="away",leave="staying"} 1`,
    `{disk="${two}",node="node-1-0",state="serving",leave="staying"} 1`,
    expect.stringContaining('serving'),
  ]);
  expect(await linesOf('holdfast_disk_partitions')).toContain(`{disk="${one}",hold="owned"} 4096`);
  expect(await linesOf('holdfast_disk_partitions')).toContain(`{disk="${one}",hold="pending"} 0`);
  expect(await linesOf('holdfast_disk_capacity_bytes')).toContain(`{disk="${two}"} 1001`);
  expect(await linesOf('holdfast_missed_disks')).toEqual(['1']);
  expect(await linesOf('holdfast_placement_owner_nodes')).toEqual(['3']);

  // It is served again: what it was is told no more.
  measureDisks(telemetry, seeDisks(map, disks.map(memberOf)));
  expect((await linesOf('holdfast_disk_state')).filter((line) => line.includes(one))).toEqual([
    expect.stringContaining('state="serving"'),
  ]);
  expect(await linesOf('holdfast_missed_disks')).toEqual(['0']);

  measureDisks(telemetry, undefined);
  for (const name of ['disk_state', 'disk_partitions', 'disk_capacity_bytes', 'missed_disks'])
    expect(await linesOf(`holdfast_${name}`)).toEqual([]);
  expect(await linesOf('holdfast_placement_owner_nodes')).toEqual([]);
  expect(refused).toEqual([]);
});
