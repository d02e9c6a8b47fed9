// Runs the scenarios: transcripts of commands to shards and of their replies, tests/scenarios/<machine>/*.txt, each in
// a fresh world (world.ts) on the state machine of that name (machines.ts). UPDATE_SCENARIOS=1 writes what came out
// into the files; review the diff.
//
// A file is a row of blocks, with blank lines between, and comments that begin with #. A block is directives, one a
// line (indented lines continue the one above), then ----, then their expected output, up to a blank line.
//   shards N                     number of shards (2); before the first command, as is
//   seed N                       the seed of chance (1)
//   execute SHARD [request=ID] [bucket=ID,NAME,CFGVERSION] COMMAND JSON
//   query SHARD [bucket=...] QUERY JSON
//                                prints `done` and the outcome, or `stale-bucket`, `busy`, `unknown`, `throws`
//   lose-reply execute ...       runs it and forgets the reply: repeat it with the same request id
//   start LABEL execute ...      does not wait for the reply; `pending` prints the labels that have none yet
//   await [LABEL...]             prints the replies of started calls, in the order of starting
//   hold-commits, release-commits, fail-store
//                                the store keeps commits waiting; goes on; fails for good
//   advance DURATION             10ms, 5s, 2m, 3h, 1d: time passes
//   set-wall [-]DURATION         the wall clock alone is moved
//   restart, crash               opens the shards anew over the same store; in a crash, waiting commits are lost
//   rows SHARD TABLE             prints the rows of a table: key = value. The engine's tables are engine.applied, ...
//   counters SHARD NAME...       prints committed counters
//   time SHARD                   prints time and number of the last committed entry
//   work WORKER                  runs a background worker until it is idle
//   let NAME PATH                names a part of the last `done` outcome (upload.uploadId): $NAME stands for it in
//                                later directives, and in the output where it has 8 characters or more
// Bytes in JSON are {"hex": "..."} or {"utf8": "..."}; output shows long ones by size and digest.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { MACHINES } from './machines.ts';
import { formatTranscript, parseTranscript } from './transcript.ts';
import { createWorld } from './world.ts';

const isUpdating = process.env.UPDATE_SCENARIOS === '1';

describe.each(Object.keys(MACHINES))('%s', (name) => {
  const folder = join(import.meta.dirname, name);
  const files = readdirSync(folder).filter((file) => file.endsWith('.txt'));

  test.each(files)('%s', async (file) => {
    const path = join(folder, file);
    const text = readFileSync(path, 'utf8');
    const pieces = parseTranscript(text);
    const world = createWorld(must(MACHINES[name], name));
    for (const piece of pieces) {
      if (piece.kind === 'text') continue;
      const { block } = piece;
      const output: string[] = [];
      for (const directive of block.directives) {
        try {
          output.push(...(await world.run(directive)));
        } catch (error) {
          throw new Error(`${file}, block at line ${block.line}, ${directive}`, { cause: error });
        }
      }
      block.expected = output;
    }
    const result = formatTranscript(pieces);
    if (isUpdating) writeFileSync(path, result);
    else expect(result).toBe(text);
  });
});
