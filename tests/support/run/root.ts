// Where the project is on this machine.
import { join } from 'node:path';

/** The top folder of the project. */
export const ROOT = join(import.meta.dirname, '..', '..', '..');
