// Of the placement map fewer partitions than in life: what a change costs grows with their number, and nothing else does.
// Imported before whatever counts them.
import { LIMITS } from '../../src/types/limits.ts';

const PARTITION_COUNT = 48;

(LIMITS as { partitionCount: number }).partitionCount = PARTITION_COUNT;
