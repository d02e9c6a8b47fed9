// What the environment of a server has to say before its process begins. Who starts one of Holdfast's processes gives it this,
// below what the environment says itself: holdfast.mjs, deploy/holdfast (which has it once more, as a shell has no JSON), the
// cluster on one machine, tests and benchmarks.
// - UV_THREADPOOL_SIZE: threads of libuv, by which files are read and written; four otherwise. Of a storage node, reads of a drive
//   that hangs keep theirs for as long: two such drives would leave none to the others. Of a single node, four writes into extents
//   would leave none to reads.
// - MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ (bytes; of glibc, others take no notice): memory of chunks that was given
//   back stays with the process up to 32 MiB for each of its pools, and pieces above 2 MiB go back at once (8 MiB in a cluster,
//   where chunks of large bodies have 4). By its own rule glibc gives nearly all of it back and takes it again for the next chunk,
//   which costs a GET of large bodies 60 page faults a MiB.
import { readFileSync } from 'node:fs';

type Variables = Readonly<Record<string, string>>;

const BY_COMMAND: Readonly<Record<string, Variables>> = JSON.parse(
  readFileSync(new URL('./process-environment.json', import.meta.url), 'utf8'),
);

/** By name and value; none for what is not a server. */
export function processEnvironment(command: string): Variables {
  return BY_COMMAND[command] ?? {};
}
