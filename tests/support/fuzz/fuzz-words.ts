// What a fuzz makes its requests of: every name of a header and a parameter that stands in the gateway's own source, so
// that new ones come in by themselves, and values at which parsers make mistakes. Not here: how they are put together
// (fuzz-requests.ts).
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KNOWN_SUB_RESOURCES } from '../../../src/gateway/s3/request/sub-resources.ts';
import { TARGET_CONDITION_HEADERS } from '../../../src/gateway/s3/request/write-conditions.ts';
import { seededNumbers } from '../clients/tree.ts';
import { ROOT } from '../run/root.ts';

/** Chances that the seed decides. */
export interface Dice {
  /** A whole number below `count`. */
  below(count: number): number;
  /** True `share` of the time. */
  chance(share: number): boolean;
  pick<T>(choices: readonly T[]): T;
}

export function rollDice(seed: string): Dice {
  const random = seededNumbers(seed);
  const below = (count: number) => Math.floor(random() * count);
  return {
    below,
    chance: (share) => random() < share,
    pick: <T>(choices: readonly T[]) => choices[below(choices.length)] as T,
  };
}

/** What is in the server when a request goes there: the parts of requests that get far. */
export interface FuzzWorld {
  readonly buckets: readonly string[];
  readonly keys: readonly string[];
  readonly etag: string;
  readonly versionId: string;
  readonly uploadIds: readonly string[];
  readonly token: string;
}

const GATEWAY = join(ROOT, 'src', 'gateway');
const SOURCE = globSync('**/*.ts', { cwd: GATEWAY })
  .filter((name) => !name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(GATEWAY, name), 'utf8'))
  .join('\n');

function named(pattern: RegExp): string[] {
  return [...SOURCE.matchAll(pattern)].map(([, name = '']) => name);
}

/** Of operations and of the gateway itself; not those that frame a message. */
export const HEADER_NAMES: readonly string[] = [
  ...new Set([
    ...named(/'((?:x-amz|x-std|x-svc|if|content|response|x-forwarded|access-control)-[a-z0-9-]*)\*?'/g),
    ...[
      'range',
      'if-range',
      'origin',
      'cache-control',
      'expires',
      'date',
      'x-amz-meta-a',
      'x-amz-meta-__proto__',
    ],
    ...[
      '__proto__',
      'constructor',
      'x-wasabi-a',
      'accept',
      'referer',
      'user-agent',
      'cookie',
      'trailer',
      'te',
    ],
    ...['x-amz-checksum-crc32', 'x-amz-checksum-crc32c', 'x-amz-checksum-sha1', 'x-amz-checksum-sha256'],
    ...['x-amz-checksum-crc64nvme', 'x-amz-security-token', 'x-amz-copy-source-if-match', 'response-x'],
    ...['x-amz-server-side-encryption-customer-key', 'x-amz-server-side-encryption-customer-algorithm'],
    ...['x-amz-server-side-encryption-customer-key-md5', 'x-amz-copy-source-if-unmodified-since'],
    ...[...TARGET_CONDITION_HEADERS, 'destination', 'overwrite', 'x-wasabi-prefix'],
  ]),
]
  .filter((name) => name !== 'content-length')
  .map((name) => (name.endsWith('-') ? `${name}x` : name));

export const PARAMETER_NAMES: readonly string[] = [
  ...new Set([
    ...KNOWN_SUB_RESOURCES,
    ...named(/query\.(?:get|has)\('([\w-]+)'\)/g),
    ...named(/'((?:max|key|version-id|upload-id|part-number)-[a-z]+)'/g),
    ...['list-type', 'id', 'response-content-type', 'response-expires', '__proto__', 'constructor', '', 'x'],
    ...[
      'X-Amz-Date',
      'X-Amz-Expires',
      'X-Amz-Signature',
      'X-Amz-Credential',
      'Signature',
      'Expires',
      'x-amz-acl',
    ],
  ]),
];

const MD5 = '1B2M2Y8AsgTpgAmY7PhCfg==';
const KEY = Buffer.alloc(32, 7).toString('base64');

/** Values of headers, one character for each byte. */
export function headerValue(dice: Dice, world: FuzzWorld): string {
  const bucket = dice.pick(world.buckets);
  const key = dice.pick(world.keys);
  return dice.pick([
    () =>
      dice.pick([
        '',
        '*',
        '"',
        ',',
        ', ,',
        'null',
        '__proto__',
        'constructor',
        '\xff\xfe',
        'voil\xc3\xa0',
        '%',
        '%00',
      ]),
    () =>
      dice.pick([
        '0',
        '-0',
        '1',
        '-1',
        '+1',
        '2147483648',
        '9007199254740993',
        '1e999',
        'NaN',
        '0x10',
        '1.5',
      ]),
    () =>
      dice.pick(['true', 'false', 'True', 'ENABLED', 'AES256', 'aws:kms', 'STANDARD', 'GLACIER', 'private']),
    () =>
      dice.pick(['CRC32', 'crc32c', 'CRC64NVME', 'SHA1', 'COMPOSITE', 'FULL_OBJECT', 'COPY', 'REPLACE', 'x']),
    () =>
      dice.pick([
        'x-amz-checksum-crc32',
        'x-amz-checksum-sha256',
        'url',
        'GOVERNANCE',
        'gzip',
        'aws-chunked',
      ]),
    () =>
      dice.pick([`"${world.etag}"`, world.etag, `W/"${world.etag}"`, '"x"', '"x", *', `"x","${world.etag}"`]),
    () =>
      dice.pick([
        'bytes=0-0',
        'bytes=-1',
        'bytes=5-',
        'bytes=9-1',
        'bytes=0-1,3-4',
        'bytes=-0',
        'bytes= 1 - 2 ',
      ]),
    () =>
      dice.pick(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994', '06 Nov 2094 08:49:37 +0200']),
    () =>
      dice.pick([
        '20130524T000000Z',
        '99999999T999999Z',
        '2094-11-06T08:49:37Z',
        'Thu, 01 Jan 1970 00:00:00 GMT',
      ]),
    () =>
      dice.pick(['AAAAAA==', 'AAAAAAAAAAA=', MD5, KEY, 'AAAA', '====', 'AAAAAA==-3', `${'A'.repeat(43)}=`]),
    () => dice.pick(['a=b', 'a=b&a=c', 'a', '&&', '=', 'a=%zz', 'aws:a=b', `${'a='.repeat(12)}&b`, 'a=%C3']),
    () =>
      dice.pick([
        `/${bucket}/${key}`,
        `${bucket}/${key}`,
        `${bucket}/`,
        `//${key}`,
        `${bucket}/%00`,
        `${bucket}/%ff`,
      ]),
    () =>
      dice.pick([
        `${bucket}/${key}?versionId=${world.versionId}`,
        `${bucket}/${key}?versionId=`,
        '%00/a',
        '__proto__/a',
      ]),
    () =>
      dice.pick([
        '127.0.0.1',
        '::1',
        'unknown, 1.2.3',
        'https',
        'a.s3.test',
        'arn:aws:s3:::x',
        '{"a":1}',
        'id=1',
      ]),
    () =>
      dice
        .pick([' ', ',', '"', '-', 'a', '%', '=', '/', 'W/'])
        .repeat(dice.below(dice.chance(0.02) ? 9000 : 300)),
  ])();
}

/** Values of parameters, percent-encoded or badly so. */
export function parameterValue(dice: Dice, world: FuzzWorld): string {
  return dice.pick([
    () =>
      dice.pick(['', '0', '1', '2', '1000', '-1', '+5', '10001', '2147483648', '1e3', '007', ' 1', '%31']),
    () =>
      dice.pick([
        '/',
        'a',
        '%00',
        '%ff',
        '%C3',
        '%EF%BF%BF',
        '%F0%9F%98%80',
        '%ED%A0%80',
        '%',
        '%zz',
        '+',
        '%2B',
      ]),
    () =>
      dice.pick([
        'url',
        'true',
        'false',
        'null',
        '__proto__',
        'constructor',
        'us-east',
        '%01',
        '*',
        '\xff',
        '%26%3D',
      ]),
    () =>
      dice.pick([
        dice.pick(world.uploadIds),
        world.versionId,
        world.token,
        `1${'_w'.repeat(20)}`,
        '0'.repeat(44),
        'A'.repeat(32),
      ]),
    () => dice.pick(world.keys),
    () =>
      dice
        .pick(['a', '%41', '/', '%2F', '%C3%A9', '%EF%BF%BF'])
        .repeat(dice.below(dice.chance(0.05) ? 3000 : 40)),
  ])();
}

/** What stands behind the bucket's slash, percent-encoded or badly so. */
export function keyPath(dice: Dice, world: FuzzWorld): string {
  return dice.pick([
    () => dice.pick(world.keys),
    () => dice.pick(world.keys),
    () =>
      dice.pick([
        '',
        '/',
        '//',
        '..',
        '../..',
        '.',
        '%2F',
        '%2e%2e/',
        'a%2Fb',
        '__proto__',
        'constructor',
        'a+b%20c',
      ]),
    () =>
      dice.pick([
        '%00',
        '%ff',
        '%',
        '%zz',
        '\xff',
        '\xc3\xa9',
        '%C3%A9',
        '%EF%BF%BF',
        '%F4%8F%BF%BF',
        '%01',
        '#',
        '%0d%0a',
      ]),
    () => dice.pick(['k', '%C3%A9', '/', '%2F']).repeat(dice.pick([1, 100, 512, 1024, 1025, 2000])),
  ])();
}

/** Buckets that requests make, and rename into one another. */
export const NEW_BUCKETS: readonly string[] = ['fuzz-new-one', 'fuzz-new-two', 'fuzz-new-three'];

/** The first segment of a path. */
export function bucketPath(dice: Dice, world: FuzzWorld): string {
  if (dice.chance(0.85)) return dice.pick(world.buckets);
  return dice.pick([
    ...[
      'no-such-bucket',
      'ab',
      'A',
      '..',
      '1.2.3.4',
      '%',
      '%00',
      'a%2Fb',
      '__proto__',
      'constructor',
      'x'.repeat(64),
    ],
    ...[
      'health',
      'health/live',
      'health/ready',
      'metrics',
      'holdfast-admin',
      'holdfast-admin/v1',
      'console',
      'api',
    ],
    ...NEW_BUCKETS,
    ...['xn--a', '\xff', '*', 'http://h', '%ff'],
  ]);
}

/** Compositions, of which some may come true. */
function composeTexts(dice: Dice, { etag, versionId }: FuzzWorld, key: string): string[] {
  const versions = ['', '', '', `<VersionId>${versionId}</VersionId>`, '<VersionID>null</VersionID>'];
  const conditions = ['', '', '', `<IfMatch>"${etag}"</IfMatch>`, '<IfNoneMatch>"x", W/"y"</IfNoneMatch>'];
  const component = () =>
    `<Component><Key>${key}</Key>${dice.pick(versions)}${dice.pick(conditions)}</Component>`;
  const simple = `<Component><Key>${key}</Key></Component>`;
  return [
    `<ComposeRequest>${simple}${component()}</ComposeRequest>`,
    `<ComposeRequest>${component()}${component()}${component()}</ComposeRequest>`,
    `<ComposeRequest>${simple.repeat(dice.pick([0, 1, 4, 32, 33]))}</ComposeRequest>`,
  ];
}

/** Documents, whole ones and such that are nearly so; whole ones of the root that is wanted. */
export function documentText(dice: Dice, world: FuzzWorld, root: string | undefined): string {
  const { etag, versionId } = world;
  const key = decodeURIComponent(dice.pick(world.keys)).replace(/[<&>]/g, '');
  const part = (number: string) => `<Part><PartNumber>${number}</PartNumber><ETag>"${etag}"</ETag></Part>`;
  const item = `<Object><Key>${key}</Key>${dice.chance(0.3) ? `<VersionId>${versionId}</VersionId>` : ''}</Object>`;
  const documents = [
    `<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>`,
    `<Delete>${item}<Object><Key>&#x1;&#65535;</Key></Object></Delete>`,
    `<Delete><Quiet>true</Quiet>${item.repeat(3)}</Delete>`,
    `<Delete><Object><Key>${key}</Key><ETag>${etag}</ETag><Size>1</Size></Object></Delete>`,
    `<CompleteMultipartUpload>${part('1')}</CompleteMultipartUpload>`,
    `<CompleteMultipartUpload>${part('1')}${part(dice.pick(['1', '0', '2', '-1', '10001', 'x']))}</CompleteMultipartUpload>`,
    `<VersioningConfiguration><Status>${dice.pick(['Enabled', 'Suspended', 'x'])}</Status></VersioningConfiguration>`,
    `<CreateBucketConfiguration><LocationConstraint>eu</LocationConstraint></CreateBucketConfiguration>`,
    `${'<a>'.repeat(dice.pick([5, 17, 500]))}`,
    `<Delete>${item.repeat(dice.pick([1000, 1001]))}</Delete>`,
    ...composeTexts(dice, world, key),
    '<!DOCTYPE a [<!ENTITY b "c">]><Delete>&b;</Delete>',
  ];
  if (root !== undefined) return dice.pick(documents.filter((text) => text.startsWith(`<${root}`)));
  const whole = dice.pick(documents);
  return dice.chance(0.4)
    ? whole
    : bend(dice, whole, ['<', '>', '/', '&', ';', ' ', '"', '\xff', '\0', '<a>', '</Key>', 'x']);
}

/** The text with one to four places of it changed: cut out, repeated, or with a piece put in. */
export function bend(dice: Dice, text: string, pieces: readonly string[]): string {
  let bent = text;
  for (let left = 1 + dice.below(4); left > 0; left--) {
    const at = dice.below(bent.length + 1);
    const end = Math.min(bent.length, at + dice.below(8));
    const inside = dice.pick([() => '', () => dice.pick(pieces), () => bent.slice(at, end).repeat(2)])();
    bent = bent.slice(0, at) + inside + bent.slice(end);
  }
  return bent;
}
