// No answer and no line of the log repeats a secret that came with the request, wherever it stood and whatever was wrong
// with the rest: keys of customers, signatures, tokens, credentials.
import { beforeAll, describe, expect, test } from 'vitest';
import { openSocket } from '../support/servers/raw-socket.ts';
import { freshWord, useApi } from '../support/servers/s3-api.ts';
import { presign, signHeaders } from '../support/servers/s3-client.ts';
import { presignV2, signHeadersV2 } from '../support/servers/sigv2-client.ts';

const api = useApi();
const MARK = `bWFyaw${freshWord()}`;
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'k', 'x');
});

const hostOf = () => new URL(api.server.endpoint).host;

/** All that a server says to these bytes, which need not be a request. */
async function answerTo(bytes: string): Promise<string> {
  const socket = await openSocket(api.server);
  const said: Buffer[] = [];
  socket.socket.on('data', (piece) => said.push(piece));
  socket.write(Buffer.from(bytes, 'latin1'));
  await socket.closed;
  return Buffer.concat(said).toString('latin1');
}

/** Statuses and codes that came, after a look at every answer for the mark. */
async function seen(
  requests: readonly { method?: string; uri: string; headers?: Record<string, string> }[],
): Promise<Set<string>> {
  const codes = new Set<string>();
  for (const { method = 'GET', uri, headers = {} } of requests) {
    const lines = Object.entries({
      host: hostOf(),
      connection: 'close',
      'content-length': '0',
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await answerTo(`${method} ${uri} HTTP/1.1\r\n${lines.join('')}\r\n`);
    expect(answer, `${method} ${uri} ${JSON.stringify(headers)}`).not.toContain(MARK);
    expect(answer).toMatch(/^HTTP\/1\.1 \d{3}/);
    codes.add(/<Code>(\w+)<|"code":"(\w+)"/.exec(answer)?.slice(1).find(Boolean) ?? answer.slice(9, 12));
  }
  expect(JSON.stringify(api.server.logs())).not.toContain(MARK);
  return codes;
}

const PARAMETERS = [
  'x-amz-server-side-encryption-customer-key',
  'X-Amz-Copy-Source-Server-Side-Encryption-Customer-Key',
  'X-Amz-Signature',
  'Signature',
  'X-Amz-Security-Token',
  'x-amz-security-token',
];
const pathsOf = () => [`/${bucket}/k`, `/${bucket}`, '/', '/no-such-bucket/k', '/holdfast-admin/v1/accounts'];

test('a name and a password in an absolute target', async () => {
  const user = `user:${MARK}@`;
  await seen([
    { uri: `http://${user}h/no-such-bucket/x` },
    { uri: `http://${user}h/%zz` },
    { uri: `ftp://${user}h/x` },
    { uri: `http://${user}h` },
  ]);
});

describe.each(PARAMETERS)('%s', (name) => {
  test('in a query that is read, repeated, or malformed', async () => {
    const encoded = name.replaceAll('-', '%2D');
    const codes = await seen(
      pathsOf().flatMap((path) =>
        [
          `${path}?${name}=${MARK}`,
          `${path}?${name}=${MARK}&${name}=${MARK}`,
          `${path}?versionId=x&uploadId=y&acl&tagging&${name}=${MARK}`,
          `${path}?${name}=${MARK}&a=%zz`,
          `${path}?${name}=${MARK}%ff`,
          `${path}?${name}=${MARK}%00`,
          `${path}?${encoded}=${MARK}&a=%`,
          `${path}#?${name}=${MARK}`,
          `${path}?#${name}=${MARK}`,
          `${path}%3F${name}=${MARK}`,
          `${path}%3F${encoded}%3D${MARK}`,
          `${path}%253F${name}%253D${MARK}`,
          `${path}%3F${name}=${MARK}%zz`,
          `http://h${path}?${name}=${MARK}&%zz`,
          `nonsense?${name}=${MARK}`,
        ].flatMap((uri) => [{ uri }, { uri, method: 'PUT' }, { uri, method: 'MOVE' }]),
      ),
    );
    for (const code of ['InvalidURI', 'InvalidArgument', 'AccessDenied']) expect(codes).toContain(code);
  });

  test('in a query with another signature, whose request is refused later', async () => {
    const sent = { credentials: api.server, nowMs: Date.now(), headers: { host: hostOf() } };
    const wrong = { ...sent, credentials: { ...api.server, secretKey: 'wrong' } };
    const uris = [`/${bucket}/k?${name}=${MARK}`, `/${bucket}/none?${name}=${MARK}`];
    const requests = uris.flatMap((uri) =>
      [sent, wrong].flatMap((options) => {
        const headers = { ...options.headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
        const [path] = uri.split('?');
        const v2 = { method: 'GET', resource: `${path}`, credentials: options.credentials };
        return [
          { uri: presign({ ...options, method: 'GET', uri, expiresSeconds: 60 }) },
          { uri, headers: signHeaders({ ...options, headers, method: 'GET', uri }).headers },
          { uri: `${uri}&${presignV2({ ...v2, expires: 2_000_000_000 })}` },
          { uri, headers: signHeadersV2({ ...v2, nowMs: Date.now() }) },
        ];
      }),
    );
    expect((await seen(requests)).size).toBeGreaterThan(0);
  });
});

test('in an Authorization header of any kind, alone, twice, and with a query', async () => {
  const values = [
    MARK,
    `Basic ${MARK}`,
    `Bearer ${MARK}`,
    `AWS ${api.server.accessKey}:${MARK}`,
    `AWS key:${MARK}:${MARK}`,
    `AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b, Signature=${MARK}`,
    `AWS4-HMAC-SHA256 Signature=${MARK}`,
    `AWS4-ECDSA-P256-SHA256 Signature=${MARK}`,
    `AWS4-HMAC-SHA256 Credential=${api.server.accessKey}/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=${MARK}`,
  ];
  const dated = { date: new Date().toUTCString(), 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
  const codes = await seen(
    pathsOf().flatMap((path) =>
      values.flatMap((authorization) => [
        { uri: path, headers: { authorization } },
        { uri: path, headers: { authorization, ...dated }, method: 'DELETE' },
        { uri: path, headers: { authorization, Authorization: authorization } },
        { uri: `${path}?X-Amz-Algorithm=AWS4-HMAC-SHA256`, headers: { authorization } },
        { uri: `${path}?%zz`, headers: { authorization, 'bad header': MARK } },
      ]),
    ),
  );
  for (const code of [
    'InvalidArgument',
    'AuthorizationHeaderMalformed',
    'SignatureDoesNotMatch',
    'BadRequest',
  ])
    expect(codes).toContain(code);
});

test('in headers with keys and tokens, with good and bad signatures, on every kind of request', async () => {
  const names = [
    ...PARAMETERS.filter((name) => /^x/i.test(name)),
    'x-std-server-side-encryption-customer-key',
    'x-amz-mfa',
  ];
  const requests = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'MOVE'].flatMap((method) =>
    names.flatMap((name) =>
      [api.server.secretKey, 'wrong'].flatMap((secretKey) => {
        const uri = `/${bucket}/k`;
        const lowerName = name.toLowerCase();
        const companions = lowerName.endsWith('customer-key')
          ? { [`${lowerName}-md5`]: 'x', [lowerName.replace(/-key$/, '-algorithm')]: 'AES256' }
          : {};
        const headers = {
          host: hostOf(),
          'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
          [lowerName]: MARK,
          ...companions,
        };
        const signed = signHeaders({
          method,
          uri,
          headers,
          credentials: { ...api.server, secretKey },
          nowMs: Date.now(),
        });
        return [
          { method, uri, headers: signed.headers },
          { method, uri, headers: { ...signed.headers, [name.toUpperCase()]: MARK } },
        ];
      }),
    ),
  );
  const codes = await seen(requests);
  for (const code of ['SignatureDoesNotMatch', 'InvalidArgument', 'InvalidToken'])
    expect(codes).toContain(code);
});

test('in the URL of a Referer, and in the user agent', async () => {
  const url = `https://h/b/k?X-Amz-Signature=${MARK}&X-Amz-Security-Token=${MARK}`;
  const headers = { referer: url, 'user-agent': `client ${url}`, 'x-forwarded-for': '192.0.2.1' };
  await seen(['/health/live', '/metrics', ...pathsOf()].map((uri) => ({ uri, headers })));
});

test('user agents, buckets and paths are logged up to a bound', async () => {
  const long = 'y'.repeat(20_000);
  await seen([
    { uri: `/${bucket}/${long}` },
    { uri: `/${long}/k` },
    { uri: `/holdfast-admin/v1/${long}` },
    { uri: '/', headers: { 'user-agent': long } },
  ]);
  for (const line of api.server.logs()) expect(JSON.stringify(line).length).toBeLessThan(4096);
});
