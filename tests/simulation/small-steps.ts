// Of steps and pieces fewer than in life, so that a walk over few keys has several steps, few pieces are folded, and a job
// that was left is driven on within a seed. Imported before whatever reads them.
import { LIMITS } from '../../src/types/limits.ts';

type Changed =
  | 'moveKeysMax'
  | 'moveKeysBesideOthersMax'
  | 'moveVersionsMax'
  | 'moveStepVersionsMax'
  | 'moveStepVersionsBesideOthersMax'
  | 'jobStallTimeoutMs'
  | 'jobHoldMs'
  | 'jobStalledMs'
  | 'compactPiecesMin'
  | 'compactGrowthMin'
  | 'compactReadPiecesMin'
  | 'grownPieceBytesMax'
  | 'grownPiecesMax';
const limits = LIMITS as { -readonly [Name in Changed]: number };

limits.moveKeysMax = 1;
limits.moveKeysBesideOthersMax = 1;
// A key of three versions is renamed in several entries, which move one of them each.
limits.moveVersionsMax = 2;
limits.moveStepVersionsMax = 1;
limits.moveStepVersionsBesideOthersMax = 1;
limits.jobStallTimeoutMs = 1500;
limits.jobHoldMs = 500;
limits.jobStalledMs = 2000;
limits.compactPiecesMin = 3;
limits.compactGrowthMin = 2;
limits.compactReadPiecesMin = 3;
// Some of what clients append is larger, and has a blob of its own (link-clients.ts).
limits.grownPieceBytesMax = 32;
limits.grownPiecesMax = 3;
