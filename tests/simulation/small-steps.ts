// Of steps and pieces fewer than in life, so that a walk over few keys has several steps, few pieces are folded, and a job
// that was left is driven on within a seed. Imported before whatever reads them.
import { LIMITS } from '../../src/model/limits.ts';

type Changed = 'moveKeysMax' | 'jobLeftMs' | 'foldPiecesMin' | 'foldGrowthMin' | 'foldReadPiecesMin';
const limits = LIMITS as { -readonly [Name in Changed]: number };

limits.moveKeysMax = 2;
limits.jobLeftMs = 5000;
limits.foldPiecesMin = 5;
limits.foldGrowthMin = 2;
limits.foldReadPiecesMin = 4;
