import { createHash, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { nearly } from '../../../tests/support/run/properties.ts';
import {
  type ChunkedOptions,
  chunkedBody,
  type Signed,
  signHeaders,
} from '../../../tests/support/servers/s3-client.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import type { SignedPieces } from '../../objects/object-store.ts';
import { AppError } from '../../types/errors.ts';
import { createChunkSignatures, deferChunkSignatures } from './chunk-signatures.ts';
import { openChunkedBody } from './sigv4-chunked-body.ts';

const AWS = { accessKey: 'AKIAIOSFODNN7EXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };
const seed: Signed = signHeaders({
  method: 'PUT',
  uri: '/examplebucket/chunkObject.txt',
  headers: {
    host: 's3.amazonaws.com',
    'x-amz-date': '20130524T000000Z',
    'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    'content-encoding': 'aws-chunked',
    'x-amz-decoded-content-length': '66560',
    'content-length': '66824',
  },
  credentials: AWS,
  nowMs: Date.parse('2013-05-24T00:00:00Z'),
});
const trailer = { name: 'x-amz-checksum-crc32', value: 'AAAAAA==' };

interface Decoding {
  wire: Buffer;
  sizeBytes: number;
  isSigned?: boolean;
  /** Whoever has the body checks its chunks. */
  isDeferred?: boolean;
  trailerName?: string;
  /** Sizes of the pieces in which the wire bytes arrive. */
  pieceBytes?: readonly number[];
}

async function decode(options: Decoding): Promise<{ body: Buffer; trailer: string | undefined }> {
  const { wire, sizeBytes, isSigned = false, isDeferred = false, trailerName, pieceBytes = [] } = options;
  let at = 0;
  let count = 0;
  const { signingKey, signature, timestamp, scope } = seed;
  const by = { signingKey: createSecretKey(signingKey), signature, timestamp, scopeText: scope };
  const left = isDeferred ? deferChunkSignatures(by, nextTurn) : undefined;
  const decoded = openChunkedBody({
    turn: nextTurn,
    async read() {
      if (at >= wire.length) return undefined;
      const piece = wire.subarray(at, at + (pieceBytes[count++ % pieceBytes.length] ?? wire.length));
      at += piece.length;
      return piece;
    },
    sizeBytes,
    ...(isSigned && { signatures: left?.signatures ?? createChunkSignatures(by) }),
    ...(trailerName !== undefined && { trailerName }),
  });
  const pieces: Buffer[] = [];
  for await (const piece of decoded.stream) pieces.push(piece);
  const body = Buffer.concat(pieces);
  if (isSigned && left !== undefined) await checkLater(body, left.deferred);
  return { body, trailer: decoded.trailer() };
}

/** As the writer of a body does: some chunks in one call, others in the next. */
async function checkLater(body: Buffer, deferred: SignedPieces): Promise<void> {
  let from = 0;
  if (body.length > 0) expect(deferred.heldBytes()).toBeGreaterThan(0);
  for (const uptoBytes of [body.length >> 1, body.length]) {
    const digests = deferred.takeEnds(uptoBytes).map((end) => {
      const digest = createHash('sha256').update(body.subarray(from, end)).digest();
      from = end;
      return digest;
    });
    expect(deferred.isDone()).toBe(body.length === 0);
    await deferred.check(Buffer.concat(digests));
  }
  expect(from).toBe(body.length);
  expect(deferred.isDone()).toBe(true);
}

async function codeOf(options: Decoding): Promise<string> {
  try {
    await decode(options);
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return 'none';
}

const text = (wire: string, sizeBytes: number, more: Partial<Decoding> = {}) =>
  codeOf({ wire: Buffer.from(wire, 'latin1'), sizeBytes, ...more });

test("AWS's example: 65 KiB in two signed chunks", async () => {
  // "Example: PUT object", signature calculations in multiple chunks.
  expect(seed.signature).toBe('4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9');
  const part = 'a'.repeat(65_536);
  const wire = Buffer.from(
    `10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n${part}\r\n` +
      `400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n${part.slice(0, 1024)}\r\n` +
      '0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n',
  );
  expect(wire).toHaveLength(66_824);
  const { body } = await decode({ wire, sizeBytes: 66_560, isSigned: true });
  expect(createHash('md5').update(body).digest('hex')).toBe(
    createHash('md5').update('a'.repeat(66_560)).digest('hex'),
  );
});

test('every body in every framing arrives, in buffers of any size', async () => {
  const bodies = fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes));
  const arrivals = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(
      bodies,
      fc.integer({ min: 1, max: 1200 }),
      arrivals,
      fc.boolean(),
      fc.boolean(),
      fc.boolean(),
      async (body, chunkBytes, pieceBytes, isSigned, isDeferred, hasTrailer) => {
        const options: ChunkedOptions = {
          body,
          chunkBytes,
          ...(isSigned && { seed }),
          ...(hasTrailer && { trailer }),
        };
        const decoded = await decode({
          wire: chunkedBody(options),
          sizeBytes: body.length,
          isSigned,
          isDeferred,
          pieceBytes,
          ...(hasTrailer && { trailerName: trailer.name }),
        });
        expect(decoded.body.equals(body)).toBe(true);
        expect(decoded.trailer).toBe(hasTrailer ? trailer.value : undefined);
      },
    ),
    { numRuns: 60 },
  );
});

describe.each([
  ['are checked as their chunks end', false],
  ['are left to who writes the body', true],
])('signatures %s', (_, isDeferred) => {
  const body = Buffer.from('0123456789'.repeat(10));
  const signed = (bend: ChunkedOptions['bend'], more: Partial<ChunkedOptions> = {}) =>
    chunkedBody({ body, chunkBytes: 30, seed, trailer, ...(bend && { bend }), ...more });
  const options = { sizeBytes: 100, isSigned: true, isDeferred, trailerName: trailer.name };

  test.each([0, 1, 3, 4, 5])('chunk signature %i is wrong', async (wrong) => {
    const wire = signed((signature, index) => (index === wrong ? '0'.repeat(64) : signature));
    expect(await codeOf({ wire, ...options })).toBe('SignatureDoesNotMatch');
  });

  test('a changed byte of a chunk or of the trailer is found', async () => {
    const wire = signed(undefined);
    expect(await codeOf({ wire, ...options })).toBe('none');
    const changed = Buffer.from(wire);
    changed[wire.indexOf('0123')] = 0x31;
    expect(await codeOf({ wire: changed, ...options })).toBe('SignatureDoesNotMatch');
    const otherTrailer = Buffer.from(wire.toString('latin1').replace('AAAAAA==', 'AAAAAB=='), 'latin1');
    expect(await codeOf({ wire: otherTrailer, ...options })).toBe('SignatureDoesNotMatch');
  });

  test('a missing or unexpected signature is refused', async () => {
    const unsigned = chunkedBody({ body, chunkBytes: 30, trailer });
    expect(await codeOf({ wire: unsigned, ...options })).toBe('IncompleteBody');
    expect(await codeOf({ wire: signed(undefined), ...options, isSigned: false })).toBe('IncompleteBody');
    const wire = Buffer.from(
      signed(undefined)
        .toString('latin1')
        .replace(/x-amz-trailer-signature:.*\r\n/, ''),
      'latin1',
    );
    expect(await codeOf({ wire, ...options })).toBe('MalformedTrailerError');
  });

  test('a chunk beyond the limit is not passed on unverified', async () => {
    const wire = `4000001;chunk-signature=${'0'.repeat(64)}\r\n`;
    expect(await text(wire, 0x4000001, { isSigned: true })).toBe('EntityTooLarge');
  });
});

describe('framing', () => {
  test.each([
    ['', 0],
    ['3\r\nab', 3],
    ['3\r\nabc', 3],
    ['3\r\nabc\r\n', 3],
    ['3\r\nabcd\r\n0\r\n\r\n', 3],
    ['3\r\nabc\n0\r\n\r\n', 3],
    ['3\nabc\r\n0\r\n\r\n', 3],
    ['x\r\nabc\r\n0\r\n\r\n', 3],
    ['-3\r\nabc\r\n0\r\n\r\n', 3],
    ['0x3\r\nabc\r\n0\r\n\r\n', 3],
    [' 3\r\nabc\r\n0\r\n\r\n', 3],
    ['3;ext=1\r\nabc\r\n0\r\n\r\n', 3],
    ['3\r\nabc\r\n0\r\n\r\n', 2],
    ['3\r\nabc\r\n0\r\n\r\n', 4],
    ['3\r\nabc\r\n0\r\n\r\nmore', 3],
    ['fffffffff\r\nabc', 3],
    ['ffffffffff\r\nabc', 3],
    [`${'0'.repeat(9000)}\r\n`, 3],
    ['just the body', 13],
  ])('%j of %i bytes is IncompleteBody', async (wire, sizeBytes) => {
    expect(await text(wire, sizeBytes)).toBe('IncompleteBody');
  });

  test('a body may end with its last chunk', async () => {
    expect(await text('3\r\nabc\r\n0\r\n', 3)).toBe('none');
  });

  test('trailer lines may end in a line feed', async () => {
    const wire = Buffer.from('3\r\nabc\r\n0\r\nX-Amz-Checksum-CRC32: AAAAAA== \n\r\n');
    expect(await decode({ wire, sizeBytes: 3, trailerName: trailer.name })).toMatchObject({
      trailer: 'AAAAAA==',
    });
  });

  test.each([
    ['0\r\n\r\n', trailer.name],
    ['0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n', trailer.name],
    ['0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n', undefined],
    ['0\r\nx-amz-checksum-crc32:A\r\nx-amz-checksum-crc32:B\r\n\r\n', trailer.name],
    ['0\r\nx-amz-checksum-crc32:A\r\nother:B\r\n\r\n', trailer.name],
    ['0\r\nx-amz-checksum-crc32\r\n\r\n', trailer.name],
    ['0\r\n:AAAAAA==\r\n\r\n', trailer.name],
  ])('%j with %s announced is MalformedTrailerError', async (wire, trailerName) => {
    expect(await text(wire, 0, trailerName === undefined ? {} : { trailerName })).toBe(
      'MalformedTrailerError',
    );
  });

  test('a trailer is bounded', async () => {
    const wire = `0\r\nx-amz-checksum-crc32:${'A'.repeat(9000)}\r\n\r\n`;
    expect(await text(wire, 0, { trailerName: trailer.name })).toBe('IncompleteBody');
  });

  test('any bytes end in an AppError or a body', async () => {
    const pieces = fc.constantFrom(
      '0',
      '3',
      'a',
      '\r\n',
      '\n',
      '\r',
      ';chunk-signature=',
      '0'.repeat(64),
      'x-amz-checksum-crc32:',
      'abc',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces), fc.boolean(), async (parts, isSigned) => {
        const trailerName = trailer.name;
        expect(typeof (await text(parts.join(''), 3, { isSigned, trailerName, pieceBytes: [2, 1, 5] }))).toBe(
          'string',
        );
      }),
    );
  });
});

test('any changed framing ends in an AppError, or in the same body', async () => {
  const body = Buffer.from('0123456789'.repeat(10));
  const whole = chunkedBody({ body, chunkBytes: 30, seed, trailer }).toString('latin1');
  const options = { sizeBytes: 100, isSigned: true, trailerName: trailer.name };
  const texts = nearly([whole], ['\r\n', '\n', '0\r\n', ';', 'f', ':', '1e;chunk-signature=', '\xff']);
  await fc.assert(
    fc.asyncProperty(texts, async (wire) => {
      const bytes = Buffer.from(wire, 'latin1');
      const code = await codeOf({ wire: bytes, ...options, pieceBytes: [70, 3] });
      if (code === 'none') expect((await decode({ wire: bytes, ...options })).body.equals(body)).toBe(true);
    }),
    { numRuns: amountOf({ short: 60, long: 300 }) },
  );
});

test('many small chunks in many small buffers take linear time', async () => {
  const timeOf = async (count: number) => {
    const wire = Buffer.from(`${'1\r\na\r\n'.repeat(count)}0\r\n\r\n`);
    const started = process.threadCpuUsage();
    await decode({ wire, sizeBytes: count, pieceBytes: [2] });
    const { user, system } = process.threadCpuUsage(started);
    return user + system;
  };
  await timeOf(4000);
  const once = await timeOf(8000);
  expect(await timeOf(16_000)).toBeLessThan(4 * once);
});
