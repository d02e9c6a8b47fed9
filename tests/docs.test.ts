// Pages that list what tables of the code already say: each is written by this test (`vitest -u`) and must be fresh.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { METRICS } from '../src/adapters/prom-telemetry.ts';
import { valueNameOf } from '../src/config/help.ts';
import { CONFIG_FILE_VARIABLE, fileVariableOf, flagOf, variableOf } from '../src/config/names.ts';
import { SETTINGS, type SettingRow } from '../src/config/schema.ts';
import type { OperationMatch, OperationRow } from '../src/gateway/s3/operation.ts';
import { OPERATIONS } from '../src/gateway/s3/registry.ts';
import { ERRORS, type ErrorSpec } from '../src/model/errors.ts';
import { FINDINGS, PENDING } from '../src/model/findings.ts';

const page = (name: string) => join(import.meta.dirname, '..', 'docs', name);
const code = (text: string) => `\`${text}\``;

const CONFIGURATION_HEAD = `# Settings

Holdfast starts without any. A flag wins over the environment, the environment over the settings file, the file over
the default. Unknown names are refused, with the nearest known one. \`holdfast server --help\` prints this list.

The settings file is JSON and is named by \`--config PATH\` or \`${CONFIG_FILE_VARIABLE}\`; its keys are those below, where a dot
is a level: \`{"listen": "0.0.0.0:9000", "tls": {"mode": "self-signed"}}\`.

Secrets have no flag, because a command line is visible to every user of the machine: they come from the environment,
from a file that the variable ending in \`_FILE\` names, or from the settings file.

Sizes are whole numbers with B, KiB, MiB, GiB or TiB; durations with ms, s, min, h or d; lists are separated by commas.
`;

function describeSetting(row: SettingRow): string {
  const flag = flagOf(row);
  const names = [
    ...(flag === undefined ? [] : [code(`${flag} ${valueNameOf(row)}`)]),
    code(variableOf(row)),
    ...[fileVariableOf(row)].filter((name) => name !== undefined).map(code),
  ];
  const fallback = row.default === undefined || row.default === '' ? 'none' : code(row.default);
  return `### ${row.key}\n\n${row.help} Default: ${fallback}.\n\n${names.join(', ')}\n`;
}

test('docs/configuration.md lists the settings as the schema has them', async () => {
  const rows: readonly SettingRow[] = SETTINGS;
  const shown = rows.filter((row) => row.hidden !== true).map(describeSetting);
  const hidden = rows.filter((row) => row.hidden === true).map(describeSetting);
  const text = [
    CONFIGURATION_HEAD,
    '## For everyone\n',
    ...shown,
    '## For tests and rare cases\n\nThese are not in the help.\n',
    ...hidden,
  ].join('\n');
  await expect(text).toMatchFileSnapshot(page('configuration.md'));
});

const ERRORS_HEAD = `# Errors

Every error that the server answers, as the catalogue in \`src/model/errors.ts\` has it. S3 requests get it as XML
(\`<Error><Code>…\`), the operator API as JSON (\`{"error": {"code": …}}\`), with the request id in both. The message may
be more precise than the one shown here.

| Code | Status | Message |
|---|---|---|
`;

test('docs/errors.md lists the errors as the catalogue has them', async () => {
  const rows = Object.entries<ErrorSpec>(ERRORS).map(
    ([name, { status, message }]) => `| ${name} | ${status} | ${message} |\n`,
  );
  await expect(ERRORS_HEAD + rows.join('')).toMatchFileSnapshot(page('errors.md'));
});

const METRICS_HEAD = `# Metrics

\`GET /metrics\` in the text form of Prometheus. Beside those below there are the usual ones of a Node process, with the
prefix \`holdfast_\` (processor time, memory, event-loop lag, garbage collection).

| Name | Kind | Labels | Meaning |
|---|---|---|---|
`;

test('docs/metrics.md lists what is measured', async () => {
  const rows = Object.entries(METRICS).map(([name, row]) => {
    const labels = 'labels' in row ? row.labels.join(', ') : '';
    return `| ${code(name)} | ${row.kind} | ${labels} | ${row.help} |\n`;
  });
  await expect(METRICS_HEAD + rows.join('')).toMatchFileSnapshot(page('metrics.md'));
});

const S3_HEAD = `# S3 operations

What is there, and where an operation differs from AWS's documentation. An operation that is not listed answers 501
NotImplemented; so does a header of a feature that is not there yet. Besides the errors listed, every operation may
answer those of authentication, addressing and overload ([errors.md](errors.md) has all).

Requests are signed by SigV4 or SigV2, in the header or in the query, or not at all ([security.md](security.md) says what
each is worth); any well-formed region will do. The bucket is in the path, or in the host under one of the domains that
are set. A bucket that is not there is told first, then who may not, and only then what is wrong with a body.

`;

/** `PUT /{bucket}/{key}?partNumber&uploadId` */
function requestLine({ method, on, query = [], header }: OperationMatch): string {
  const path = { service: '/', bucket: '/{bucket}', object: '/{bucket}/{key}' }[on];
  const line = `${method} ${path}${query.length === 0 ? '' : `?${query.join('&')}`}`;
  return header === undefined ? code(line) : `${code(line)} with ${code(header)}`;
}

function describeOperation(row: OperationRow<never>): string {
  const errors = row.errors.length === 0 ? '' : `\n\nErrors: ${row.errors.join(', ')}.`;
  const differences = row.differences === undefined ? '' : `\n\n${row.differences}`;
  return `## ${row.name}\n\n${requestLine(row.match)}${differences}${errors}\n`;
}

test('docs/s3.md lists the operations of the registry', async () => {
  const rows = OPERATIONS.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(describeOperation);
  await expect(S3_HEAD + rows.join('\n')).toMatchFileSnapshot(page('s3.md'));
});

const FSCK_HEAD = `# holdfast fsck

\`holdfast fsck\` compares everything that is stored with everything that leads to it, and names each thing that does not
agree. The server goes on serving. It mends nothing: what crashes leave behind is freed by the background jobs without its
help, so what it finds is damage (of a disk, or of a bug), and damage is looked at before anything is written over it.

\`\`\`
holdfast fsck                 # rows, links, claims, counters, indexes; that bodies and chunks are there, with their sizes
holdfast fsck --read-data     # every chunk is read and its checksum verified, every small body is read and measured
holdfast fsck --json
\`\`\`

The exit code is 0 when all agrees, 1 when something was found, 2 when it could not be said (no server, a shard without an
answer, ended early). Each finding is one line: its kind, then where, as \`name=value\`. The first 10,000 are named, all are
counted.

## What it proves

- Every version, part and manifest page has a link on each blob that it uses, and every link has one of them that uses it.
- Every linked blob is there, is not on its way out, and is laid out as its users see it; every blob has a link, or waits
  to be released. Copies across shards: the claim in the home and the row in the other shard agree, both ways.
- Every blob has its body, or chunks 0 to n - 1 of the right sizes and no other; every body and chunk has its blob.
- Every key has one latest version, newer than all others; indexes and queues lead to what is there, both ways.
- Objects and bytes of buckets and shards, buckets of accounts and shards, chunks and their bytes are counted right.
- Every open bucket has its name, every name its bucket.

What it does not prove: that bodies can be decrypted (keys of customers are not here; the tag of every piece is checked
when it is read by a client), and that what was acknowledged is what is stored (a lost version leaves nothing behind).

## Work under way

Rows of one shard are looked at by pages, each with all that must agree with it under one view of one moment, so a change
is seen whole or not at all. What lies apart (other shards, bodies, chunks) is read at other moments: what does not agree
is looked at again, in the order in which work under way would explain it, and only what persists is found. Work that waits
for its turn is counted apart, with the age of the oldest.

## What it costs

Each row is read once, with two to six look-ups beside; versions once more for each 500,000 links of a shard, which are the
only thing that is held in memory (16 MiB). Chunks cost a row of their index each, with \`--read-data\` all their bytes. A
bucket whose counter has changed meanwhile is counted once more at one moment. It rests twice as long as it works, so clients
have two thirds of the time of the thread that serves them at least. One runs at a time, and ends when the command that
asked for it does.

`;

test('docs/fsck.md lists what may be found', async () => {
  const rowsOf = (kinds: Readonly<Record<string, string>>) =>
    Object.entries(kinds).map(([kind, meaning]) => `| ${code(kind)} | ${meaning} |`);
  const text = [
    `${FSCK_HEAD}## What may be found\n\n| Kind | Meaning |\n|---|---|`,
    ...rowsOf(FINDINGS),
    '\n## What may be on its way\n\n| Kind | Meaning |\n|---|---|',
    ...rowsOf(PENDING),
    '',
  ].join('\n');
  await expect(text).toMatchFileSnapshot(page('fsck.md'));
});
