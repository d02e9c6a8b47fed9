// No input of a client keeps the event loop: whatever it sends, others are served within 50 ms. The server runs in this
// process, and the longest turn of its loop is measured in processor time.
import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { inSlices } from '../support/run/in-slices.ts';
import { expectFreeLoop } from '../support/run/loop-watch.ts';
import { openCrowd } from '../support/servers/crowd.ts';
import { callIam } from '../support/servers/iam-api.ts';
import { beginUpload, uploadPath } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const api = useApi();
let bucket: string;
/** An upload that is open. */
let upload: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  upload = uploadPath(await beginUpload(api, { bucket, key: 'upload' }));
  await api.put(bucket, 'key', 'x');
});

/** As much of `piece` as there is room for between both ends. */
function fill([start, piece, end]: readonly [string, string, string], sizeBytes: number): Buffer {
  return Buffer.from(
    start + piece.repeat(Math.floor((sizeBytes - start.length - end.length) / piece.length)) + end,
  );
}

/** Inside of the root element, at the root's name and around it. */
const SHAPES = [
  ['ampersands', '>', '&', '</R>'],
  ['references', '>', '<a>&amp;&#x1;</a>', '</R>'],
  ['one text of references', '><a>', '&#x1;', '</a></R>'],
  ['attributes', '', ' a="b"', '></R>'],
  ['other attributes', '>', '<a b="c" d="e" f="g" h="i"/>', '</R>'],
  ['declared prefixes', '>', '<a xmlns:b="c"/>', '</R>'],
  ['elements', '>', '<a></a>', '</R>'],
  ['nested elements', '>', '<a>', '</R>'],
  ['comments', '>', '<!-- -->', '</R>'],
  ['a comment', '><!--', '- ', '--></R>'],
  ['CDATA sections', '>', '<![CDATA[ ]]>', '</R>'],
  ['instructions', '>', '<?a b?>', '</R>'],
  ['a long name', '>', 'a', '</R>'],
  ['white space', '>', ' <a/> \r\n', '</R>'],
  ['one run of white space', '>', ' ', '</R>'],
  ['a text', '><a>', 'b', '</a></R>'],
] as const;

const DOCUMENTS = [
  ['PutObjectTagging', 'PUT', () => `/${bucket}/key?tagging`, 'Tagging', LIMITS.xmlBodyBytesMax],
  ['DeleteObjects', 'POST', () => `/${bucket}?delete`, 'Delete', LIMITS.deleteObjectsBodyBytesMax],
  ['CompleteMultipartUpload', 'POST', () => upload, 'CompleteMultipartUpload', LIMITS.completeBodyBytesMax],
] as const;

test.each(DOCUMENTS)(
  '%s: documents that are as long as they may be',
  async (_name, method, path, root, sizeBytes) => {
    for (const [shape, start, piece, end] of SHAPES) {
      const body = fill([`<${root}${start}`, piece, end.replace('R', root)], sizeBytes);
      const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
      await expectFreeLoop(shape, async () => {
        const { status } = await api.send({ method, path: path(), body, headers });
        expect(status, shape).toBe(400);
      });
    }
  },
);

test('10,000 parts that do not exist', async () => {
  const part =
    '<Part><PartNumber>N</PartNumber><ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag></Part>';
  const parts = Array.from({ length: 10_000 }, (_, index) => part.replace('N', String(index + 1)));
  const body = Buffer.from(
    `<CompleteMultipartUpload>${parts.join(' '.repeat(200))}</CompleteMultipartUpload>`,
  );
  await expectFreeLoop('a part list', async () => {
    const { status } = await api.send({ method: 'POST', path: upload, body });
    expect(status).toBe(400);
  });
});

test('1,000 keys of 1,024 characters, each written as references', async () => {
  const object = `<Object><Key>${'&#x1;'.repeat(300)}${'a'.repeat(100)}N</Key></Object>`;
  const objects = Array.from({ length: 1000 }, (_, index) => object.replace('N', String(index)));
  const body = Buffer.from(`<Delete>${objects.join('')}</Delete>`);
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  await expectFreeLoop('a list of keys', async () => {
    expectStatus(await api.send({ method: 'POST', path: `/${bucket}?delete`, body, headers }), 200);
  });
});

const LONG = 14 * KiB;
/** Values that a pattern may try in many ways. */
const RUNS = [
  ' ',
  '\t ',
  ',',
  'a',
  'a=',
  '=',
  '"',
  '0',
  '-',
  '%',
  '%20',
  '%2',
  '+',
  '&',
  ';',
  '/',
  'W/',
  '"a",',
  '1-2,',
  ':',
  '.',
];
const HEADERS = [
  ...['range', 'if-match', 'if-none-match', 'if-modified-since', 'if-range', 'content-type', 'x-amz-date'],
  ...[
    'x-amz-tagging',
    'x-amz-copy-source',
    'x-amz-copy-source-if-match',
    'x-amz-meta-a',
    'cache-control',
    'expires',
  ],
  ...[
    'x-amz-content-sha256',
    'content-md5',
    'x-amz-checksum-crc32',
    'x-amz-trailer',
    'content-encoding',
    'origin',
  ],
  ...[
    'x-amz-server-side-encryption-customer-key',
    'x-amz-expected-bucket-owner',
    'x-amz-optional-object-attributes',
  ],
  ...[
    'authorization',
    'destination',
    'x-svc-idempotency-token',
    'x-amz-write-offset-bytes',
    'user-agent',
    'referer',
  ],
];

test.each(HEADERS)('the header %s with long runs', async (name) => {
  for (const method of ['GET', 'PUT']) {
    for (const run of RUNS) {
      const value = `${run.repeat(Math.floor(LONG / run.length))}!`;
      await expectFreeLoop(`${name}: ${run}`, () =>
        api.send({ method, path: pathOf(bucket, 'key'), headers: { [name]: value } }),
      );
    }
  }
});

test('query strings and paths with long runs', async () => {
  const words = ['prefix=', 'continuation-token=', 'delimiter=', 'X-Amz-Signature=', 'versionId=', ''];
  for (const run of ['&', '=', 'a&', '%20', '+', ';', '&a=', '?', '/', '%2F']) {
    const text = run.repeat(Math.floor(LONG / run.length));
    for (const word of words) {
      await expectFreeLoop(`?${word}${run}`, () =>
        api.sendAnonymous({ method: 'GET', path: `/${bucket}?list-type=2&${word}${text}` }),
      );
    }
    await expectFreeLoop(`/${run}`, () => api.sendAnonymous({ method: 'GET', path: `/${bucket}/${text}` }));
  }
});

test('aws-chunked framing in chunks of one byte, and with a long extension', async () => {
  const headers = {
    'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    'x-amz-trailer': 'x-amz-checksum-crc32',
    'content-encoding': 'aws-chunked',
  };
  const bodies = [
    ['chunks of a byte', MiB / 8, `${'1\r\na\r\n'.repeat(MiB / 8)}0\r\n\r\n`],
    ['a long extension', 1, `1;${'a'.repeat(MiB)}\r\na\r\n0\r\n\r\n`],
    ['a long size', 1, `${'0'.repeat(MiB)}1\r\na\r\n0\r\n\r\n`],
    ['a long trailer', 0, `0\r\n${'a:b\r\n'.repeat(MiB / 5)}\r\n`],
  ] as const;
  for (const [name, sizeBytes, text] of bodies) {
    await expectFreeLoop(name, () =>
      api.send({
        method: 'PUT',
        path: pathOf(bucket, 'chunked'),
        headers: { ...headers, 'x-amz-decoded-content-length': String(sizeBytes) },
        body: Buffer.from(text),
      }),
    );
  }
});

/** What 400 connections send at the same moment. */
const CROWDS = [
  [
    'long heads',
    `GET / HTTP/1.1\r\nHost: a\r\n${'x-name: of so many bytes that all take 30 KB\r\n'.repeat(650)}\r\n`,
  ],
  ['pipelined requests', 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(60)],
] as const;

test.each(CROWDS)('%s of 400 connections at once', async (name, sent) => {
  await expectFreeLoop(name, async () => {
    const crowd = await openCrowd(api.server.endpoint, 400, sent);
    await crowd.send();
    await crowd.close();
  });
});

test('HTTP chunks of one byte, on 16 connections', async () => {
  const headers = { 'transfer-encoding': 'chunked' };
  const sizeBytes = MiB / 16;
  const text = Buffer.from(`${'1\r\na\r\n'.repeat(sizeBytes)}0\r\n\r\n`);
  const upload = async (index: number) => {
    const request = { method: 'PUT', path: pathOf(bucket, `bytes-${index}`), headers };
    const socket = await openSocket(api.server);
    socket.write(headOf(api.server, request));
    socket.write(text);
    expect((await socket.answer())?.status).toBe(200);
    socket.destroy();
    const stored = await api.send({ method: 'GET', path: request.path });
    expect(stored.body.length).toBe(sizeBytes);
  };
  await expectFreeLoop('chunks of a byte', () =>
    Promise.all(Array.from({ length: 16 }, (_, index) => upload(index))),
  );
});

const documentOf = (...statements: object[]) =>
  JSON.stringify({ Version: '2012-10-17', Statement: statements });
const condition = (keys: readonly string[]) => ({
  StringEquals: Object.fromEntries(keys.map((key) => [key, ''])),
});
const ANY = { Effect: 'Allow', Action: '*', Resource: '*' };
const SIMULATIONS = [
  ['many statements', 1, 1000, () => documentOf(...Array.from({ length: 200 }, () => ANY))],
  [
    'many condition keys',
    8,
    1000,
    (at: number) =>
      documentOf({ ...ANY, Condition: condition(Array.from({ length: 700 }, (_, key) => `k${at}.${key}`)) }),
  ],
] as const;

test.each(SIMULATIONS)('simulations by %s', async (name, policyCount, resourceCount, document) => {
  const policies = Array.from({ length: policyCount }, (_, at) => [
    `PolicyInputList.member.${at + 1}`,
    document(at),
  ]);
  const resources = Array.from({ length: resourceCount }, (_, at) => [
    `ResourceArns.member.${at + 1}`,
    `arn:aws:s3:::b/${at}`,
  ]);
  const parameters = Object.fromEntries([
    ...policies,
    ...resources,
    ['ActionNames.member.1', 's3:GetObject'],
    ['ActionNames.member.2', 's3:PutObject'],
  ]);
  for (const Action of ['SimulateCustomPolicy', 'GetContextKeysForCustomPolicy']) {
    const asked = Action.startsWith('Get') ? Object.fromEntries(policies) : parameters;
    await expectFreeLoop(name, async () => {
      expect(await callIam(api.server, { Action, ...asked })).toMatchObject({ status: 200 });
    });
  }
});

test('during many listings of one account another account is served between their pages', async () => {
  const other = await api.makeAccount();
  const listed = await api.makeBucket();
  await inSlices(2500, (index) => api.put(listed, `dir-${index}/${'key'.repeat(20)}`, ''));
  const listings = [
    'list-type=2',
    'list-type=2&delimiter=%2F',
    'versions',
    '',
    'versions&delimiter=%2F',
    'fetch-owner=true',
  ];
  for (const query of listings) {
    await expectFreeLoop(`?${query}`, () =>
      Promise.all(
        Array.from({ length: 16 }, async () =>
          expectStatus(await api.send({ method: 'GET', path: `/${listed}?${query}` }), 200),
        ),
      ),
    );
  }
  const path = `/${must(await api.makeBucket(other), 'a bucket')}`;
  const ended: string[] = [];
  const many = Array.from({ length: 32 }, async () => {
    await api.send({ method: 'GET', path: `/${listed}?versions` });
    ended.push('many');
  });
  const one = api.send({ method: 'HEAD', path }, other).then(() => ended.push('one'));
  await Promise.all([...many, one]);
  expect(ended.indexOf('one'), ended.join(' ')).toBeLessThan(16);
});
