// Where the project is on this machine.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The top folder of the project. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
