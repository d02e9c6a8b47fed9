// What the API tests share: one server for a file of tests, buckets and accounts of their own, raw requests for what no
// SDK would send, and answers taken apart. Not here: what an operation should do.
import { randomBytes } from 'node:crypto';
import { S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect } from 'vitest';
import { must } from '../../../src/base/assert.ts';
import { childrenOf, parseXml, textOf, type XmlElement } from '../../../src/base/xml/parse-xml.ts';
import { signRequest } from '../../../src/cli/sign-request.ts';
import type { ErrorCode } from '../../../src/types/errors.ts';
import type { AccountState } from '../../../src/types/records/rows.ts';
import { type Access, pathOf, type RawAnswer, type RawRequest, send } from './raw-s3.ts';
import { type StartOptions, startServer, type TestServer } from './start-server.ts';

export interface Account extends Access {
  id: string;
  name: string;
  email: string;
  canonicalId: string;
  s3: S3Client;
}

export interface AccountFields {
  bucketsMax?: number;
  /** Default paid. */
  state?: AccountState;
}

export interface Api {
  /** Of the file's server. */
  readonly server: TestServer;
  /** The root account's. */
  readonly s3: S3Client;
  /** A raw request, as root by default. */
  send(wanted: RawRequest, as?: Access): Promise<RawAnswer>;
  /** A request without any signature. */
  sendAnonymous(wanted: Omit<RawRequest, 'body' | 'agent'>): Promise<RawAnswer>;
  /** A new bucket. */
  makeBucket(as?: Access): Promise<string>;
  /** A new account. */
  makeAccount(fields?: AccountFields): Promise<Account>;
  /** PUTs an object as it is; the ETag without quotes. */
  put(bucket: string, key: string, body: Buffer | string, headers?: Record<string, string>): Promise<string>;
  /** The keys that a bucket lists. */
  keysOf(bucket: string): Promise<string[]>;
}

/** Starts a server before the tests of this file and stops it behind them; no request may end in 500. */
export function useApi(options: StartOptions = {}): Api {
  let server: TestServer | undefined;
  const clients: S3Client[] = [];
  const running = () => must(server, 'a test is running');
  beforeAll(async () => {
    server = await startServer(options);
  });
  afterAll(async () => {
    for (const client of clients) client.destroy();
    const failed = server?.logs().filter(({ status }) => status === 500) ?? [];
    await server?.stop();
    expect(failed, 'requests that ended in 500').toEqual([]);
  });
  const makeClient = (access: Access) => {
    const client = new S3Client({
      endpoint: access.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      maxAttempts: 1,
      credentials: { accessKeyId: access.accessKey, secretAccessKey: access.secretKey },
    });
    clients.push(client);
    return client;
  };
  let rootClient: S3Client | undefined;
  const api: Api = {
    get server() {
      return running();
    },
    get s3() {
      rootClient ??= makeClient(running());
      return rootClient;
    },
    send: (wanted, as) => send(as ?? running(), wanted),
    sendAnonymous: (wanted) => sendAnonymous(running().endpoint, wanted),
    async makeBucket(as) {
      const name = `b-${randomBytes(6).toString('hex')}`;
      expectStatus(await api.send({ method: 'PUT', path: `/${name}` }, as), 200);
      return name;
    },
    async makeAccount(fields = {}) {
      const account = await createAccount(running(), fields);
      return { ...account, s3: makeClient(account) };
    },
    async put(bucket, key, body, headers = {}) {
      const answer = await api.send({
        method: 'PUT',
        path: pathOf(bucket, key),
        body: Buffer.from(body),
        headers,
      });
      expectStatus(answer, 200);
      return must(answer.headers.etag, 'a PUT answers with an ETag').replaceAll('"', '');
    },
    async keysOf(bucket) {
      const answer = await api.send({ method: 'GET', path: `/${bucket}` });
      return childrenOf(xmlOf(answer), 'Contents').map((entry) => textOf(entry, 'Key') ?? '');
    },
  };
  return api;
}

async function sendAnonymous(
  endpoint: string,
  wanted: Omit<RawRequest, 'body' | 'agent'>,
): Promise<RawAnswer> {
  const { method, path, headers = {} } = wanted;
  const answer = await fetch(endpoint + path, { method, headers });
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: Buffer.from(await answer.arrayBuffer()),
  };
}

/** That no other run has used, for what must not be there yet: a given server has seen many. */
export const freshWord = () => randomBytes(4).toString('hex');

/** A new one, by the operator API. */
export async function createAccount(
  server: Access,
  { state, ...fields }: AccountFields = {},
): Promise<Omit<Account, 's3'>> {
  const name = `account ${freshWord()}`;
  const email = `${freshWord()}@example.com`;
  const account = (await callOperator(server, 'POST', '/accounts', { name, email, state })) as Omit<
    Account,
    's3'
  >;
  if (fields.bucketsMax !== undefined) await callOperator(server, 'PATCH', `/accounts/${account.id}`, fields);
  return { ...account, endpoint: server.endpoint };
}

/** A call of the operator API, as root, which must succeed. */
export async function callOperator(
  server: Access,
  method: string,
  path: string,
  fields: object,
): Promise<unknown> {
  const body = JSON.stringify(fields);
  const wholePath = `/holdfast-admin/v1${path}`;
  const { host } = new URL(server.endpoint);
  const signed = signRequest({
    method,
    host,
    path: wholePath,
    body,
    credentials: server,
    nowMs: Date.now(),
  });
  const { host: _, ...headers } = signed;
  const answer = await fetch(server.endpoint + wholePath, { method, headers, body });
  expect(answer.ok, `${method} ${path}: ${answer.status}`).toBe(true);
  const text = await answer.text();
  return text === '' ? undefined : JSON.parse(text);
}

/** Fails with what the server said. */
export function expectStatus(answer: RawAnswer, status: number): void {
  expect(answer.status, answer.body.toString('utf8').slice(0, 2000)).toBe(status);
}

/** The root element of an answer. */
export function xmlOf(answer: Pick<RawAnswer, 'body'>): XmlElement {
  return parseXml(answer.body, { depthMax: 16 });
}

/** The elements of an XML answer that hold text only, by name; of repeated ones the first. */
export function fieldsOf(answer: Pick<RawAnswer, 'body'>): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const child of xmlOf(answer).children) {
    if (child.children.length === 0) fields[child.name] ??= child.text;
  }
  return fields;
}

/** Checks status, code, shape and, where given, other fields of an error. */
export function expectError(
  answer: RawAnswer,
  expected: { status: number; code: ErrorCode } & Record<string, string | number>,
): void {
  const { status, code, ...fields } = expected;
  expectStatus(answer, status);
  expect(answer.headers['content-type']).toBe('application/xml');
  expect(xmlOf(answer).name).toBe('Error');
  const told = fieldsOf(answer);
  expect(told).toMatchObject({ Code: code, RequestId: answer.headers['x-amz-request-id'] });
  for (const [name, value] of Object.entries(fields)) expect(told[name], name).toBe(String(value));
}
