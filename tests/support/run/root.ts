// Where the project is on this machine.
import { join } from 'node:path';

/** The top folder of the project. */
export const ROOT = join(import.meta.dirname, '..', '..', '..');

/** Where a program of ours keeps what it has compiled, as its launcher has it (cmd/bootstrap.mjs): without it a start takes three times as long. */
export const COMPILE_CACHE = join(ROOT, 'node_modules', '.cache', 'holdfast');
