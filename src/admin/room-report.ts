// The room of a file system and what is wrong with it: the same figures and sentences for a single node, a metadata node and
// the disks of a storage node. When a disk counts as full is src/chunks/disk/disk-reserve.ts.

import type { Room } from '../chunks/disk/disk-reserve.ts';
import { formatBytes } from '../cli/format.ts';
import { gaugeIfKnown, type PromTelemetry } from '../platform/telemetry/prom-telemetry.ts';

/** `takes`: what a full disk refuses, as `new chunks`. */
export function alarmsOfRoom(name: string, room: Room, takes: string): string[] {
  const { state, freeBytes, fullBelowBytes } = room;
  if (state === 'full') return [`${name} is full: it has ${formatBytes(freeBytes)} and takes no ${takes}`];
  if (state === 'ok') return [];
  return [`${name} is nearly full: ${formatBytes(freeBytes - fullBelowBytes)} are left`];
}

/** Gauges without a label: of the data folder of this process. undefined: its file system does not answer. */
export function measureFolderRoom(telemetry: PromTelemetry, room: Room | undefined): void {
  gaugeIfKnown(telemetry, 'holdfast_disk_free_bytes', room?.freeBytes);
  gaugeIfKnown(telemetry, 'holdfast_disk_bytes', room?.totalBytes);
  gaugeIfKnown(telemetry, 'holdfast_disk_full_below_bytes', room?.fullBelowBytes);
  gaugeIfKnown(telemetry, 'holdfast_disk_scarce_below_bytes', room?.scarceBelowBytes);
}
