// How large the trees of the backup clients are in this run.
import { amountOf } from '../run/long-form.ts';
import { FULL_TREE_MIB, MIDDLE_TREE_MIB } from './tree.ts';

/** HOLDFAST_TEST_TREE_MIB=1024 makes the tree as large as a real backup, less a quick one. */
export function fullTreeMiB(): number {
  const byHand = process.env.HOLDFAST_TEST_TREE_MIB;
  return amountOf({ short: MIDDLE_TREE_MIB, long: FULL_TREE_MIB, byHand });
}
