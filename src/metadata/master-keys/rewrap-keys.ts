// Key rotation: exchanges wrapped keys where they still are the expected ones; what has changed since is met again by a
// later pass.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { defineCommand } from '../schema/define-command.ts';
import { put } from '../schema/keyspace.ts';
import { addressesOf, locksOf, rewrapRow } from './wrapped-keys.ts';

export const rewrapKeys = defineCommand<CommandOf<'rewrap-keys'>, OutcomeOf<'rewrap-keys'>>({
  locks: ({ items }) => items.flatMap(({ row }) => locksOf(row)),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ items }, view) {
    for (const { row } of items) for (const address of addressesOf(row)) view.row(address);
  },

  decide({ items }, view, { left: busy }) {
    const isLeft = (row: Uint8Array) => locksOf(row).some(({ name }) => busy.has(name));
    const left = items.flatMap(({ row }, at) => (isLeft(row) ? [at] : []));
    const puts = items.flatMap(({ row: name, expected, replacement }, at) => {
      if (left.includes(at)) return [];
      return addressesOf(name).flatMap((address) => {
        const row = view.row(address);
        const rewrapped = row && rewrapRow(name, row, { expected, replacement });
        return rewrapped === undefined ? [] : [put(address, rewrapped)];
      });
    });
    return { outcome: { kind: 'rewrapped', count: puts.length, ...(left.length > 0 && { left }) }, puts };
  },
});
