// What a server's process has to be told before it begins: flags of Node's command line, and its environment. Who starts one of
// Holdfast's processes gives it both, the environment below what is set already: holdfast.mjs, deploy/holdfast (which has them once
// more, as a shell has no JSON), the cluster on one machine, tests and benchmarks.
// - --min-semi-space-size (MiB; of V8): where new objects of a thread lie until the first collection that they outlive. V8 begins with
//   1 MiB and makes it larger only where much outlives; a request of a server is over before 16 MiB are full, so that a collection
//   finds little to keep. It takes some 15 MiB a thread at rest, and 50 to 100 of a process under load. Less:
//   `NODE_OPTIONS=--max-semi-space-size=2`.
// - UV_THREADPOOL_SIZE: threads of libuv, by which files are read and written; four otherwise. Of a storage node, reads of a drive
//   that hangs keep theirs for as long: two such drives would leave none to the others. Of a single node, four writes into extents
//   would leave none to reads.
// - MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ (bytes; of glibc, others take no notice): memory of chunks that was given
//   back stays with the process up to 32 MiB for each of its pools, and pieces above 2 MiB go back at once (8 MiB in a cluster,
//   where chunks of large bodies have 4). By its own rule glibc gives nearly all of it back and takes it again for the next chunk,
//   which costs a GET of large bodies 60 page faults a MiB.
import { readFileSync } from 'node:fs';

export interface ProcessSettings {
  /** For Node, before the program's own arguments. */
  flags: readonly string[];
  /** By name and value. */
  environment: Readonly<Record<string, string>>;
}

const BY_COMMAND: Readonly<Record<string, ProcessSettings>> = JSON.parse(
  readFileSync(new URL('./process-settings.json', import.meta.url), 'utf8'),
);

/** Empty for what is not a server. */
export function processSettings(command: string): ProcessSettings {
  return BY_COMMAND[command] ?? { flags: [], environment: {} };
}
