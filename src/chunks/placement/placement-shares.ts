// How many partitions each disk should hold: in proportion to its capacity, as far as copies of one partition can be kept
// apart. A zone that is too large for that gives to the others, and so do nodes within a zone and disks of a node. The
// shares are fractions; spread-copies.ts hands out whole partitions.

import type { DiskId, PlacedDisk } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

const PARTITIONS = LIMITS.partitionCount;
const HALVINGS = 100;

interface Part {
  capacityBytes: number;
  atLeast: number;
  atMost: number;
}

/** The best possible layout of copies over these disks. */
export interface Spread {
  /** Owners per partition. */
  copies: number;
  /** The number of zones, and of nodes, that they are on. */
  zones: number;
  nodes: number;
}

/** As distinct as possible: zones first, then nodes, then disks. */
export function bestSpread(disks: readonly PlacedDisk[], wantedCopies: number): Spread {
  const copies = Math.min(wantedCopies, disks.length);
  const countOf = (names: readonly string[]) => Math.min(copies, new Set(names).size);
  return {
    copies,
    zones: countOf(disks.map(({ zone }) => zone)),
    nodes: countOf(disks.map(({ nodeId }) => nodeId)),
  };
}

/** Partitions by disk; their sum is `copies` times all partitions. */
export function shareOut(disks: readonly PlacedDisk[], spread: Spread): Map<DiskId, number> {
  const zones = [...Map.groupBy(disks, ({ zone }) => zone).values()].map((inZone) => {
    const nodes = [...Map.groupBy(inZone, ({ nodeId }) => nodeId).values()].map((onNode) => {
      const perDisk = onNode.map((disk) => ({ ...disk, atLeast: 0, atMost: PARTITIONS }));
      return { parts: perDisk, ...boundsOf(perDisk, { spread, distinct: spread.nodes }) };
    });
    return { parts: nodes, ...boundsOf(nodes, { spread, distinct: spread.zones }) };
  });
  const shares = new Map<DiskId, number>();
  for (const [zone, ofZone] of divide(spread.copies * PARTITIONS, zones)) {
    for (const [node, ofNode] of divide(ofZone, zone.parts)) {
      for (const [disk, ofDisk] of divide(ofNode, node.parts)) shares.set(disk.id, ofDisk);
    }
  }
  return shares;
}

/**
 * For a zone or node: at most one copy of each partition when there are as many as copies, at least one when there are
 * fewer.
 */
function boundsOf(parts: readonly Part[], { spread, distinct }: { spread: Spread; distinct: number }): Part {
  const isScarce = distinct < spread.copies;
  const copiesMax = spread.copies - distinct + 1;
  return {
    capacityBytes: sum(parts.map(({ capacityBytes }) => capacityBytes)),
    atLeast: Math.max(isScarce ? PARTITIONS : 0, sum(parts.map(({ atLeast }) => atLeast))),
    atMost: Math.min(copiesMax * PARTITIONS, sum(parts.map(({ atMost }) => atMost))),
  };
}

/** In proportion to capacity, within the bounds. */
function divide<P extends Part>(total: number, parts: readonly P[]): [P, number][] {
  const at = (level: number) =>
    parts.map((part): [P, number] => [
      part,
      Math.min(Math.max(level * part.capacityBytes, part.atLeast), part.atMost),
    ]);
  const sumAt = (level: number) => sum(at(level).map(([, share]) => share));
  let low = 0;
  let high = Math.max(...parts.map(({ atMost, capacityBytes }) => atMost / capacityBytes));
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (sumAt(middle) < total) low = middle;
    else high = middle;
  }
  return at(high);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
