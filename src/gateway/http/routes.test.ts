// The table of HTTP services: which row a request goes to, and that rows of the services to come fit in as they are.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { withinOneTurn } from '../../../tests/support/run/loop-watch.ts';
import { AppError } from '../../types/errors.ts';
import { createJsonService } from './json-service.ts';
import { ROUTES } from './routes.ts';
import { anybody, renderJsonError, serviceRow } from './serve-route.ts';
import {
  type AuthenticationPolicy,
  findRoute,
  type RouteRequest,
  type ServiceRoute,
} from './service-route.ts';

const FORM = 'application/x-www-form-urlencoded';
const signedFor = (service: string) =>
  `AWS4-HMAC-SHA256 Credential=KEY/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`;

function nameOf(rows: readonly ServiceRoute[], request: Partial<RouteRequest>): string | undefined {
  const whole = { method: 'GET', uri: '/', hasBucketHost: false, headers: {}, ...request };
  return findRoute(rows, whole)?.name;
}

test('a query that names a credential again and again is looked at once', () => {
  const uri = `/${'?X-Amz-Credential='.repeat(1000)}${'/a'.repeat(7000)}`;
  expect(withinOneTurn(() => nameOf(ROUTES, { uri }))).toBe('s3');
});

test('a long header that names a credential again and again is looked at once', () => {
  const authorization = 'Credential=/'.repeat(2600);
  const beganMs = performance.now();
  for (let round = 0; round < 10; round++) expect(nameOf(ROUTES, { headers: { authorization } })).toBe('s3');
  // A search from each of them took some 0.7 s a request.
  expect(performance.now() - beganMs).toBeLessThan(500);
});

describe('the table', () => {
  test('names each row once, with its authentication, and S3 takes the rest', () => {
    const rows = ROUTES.map(({ name, authentication }) => [name, authentication]);
    expect(rows).toEqual([
      ['health-live', 'none'],
      ['health-ready', 'none'],
      ['health', 'none'],
      ['metrics', 'none'],
      ['metrics-below', 'none'],
      ['operator-base', 'none'],
      ['operator', 'SigV4 for holdfast'],
      ['operator-versions', 'none'],
      ['management-document', 'none'],
      ['management-docs', 'none'],
      ['password-resets', 'none'],
      ['management', 'Basic, login and API key'],
      ['iam', 'SigV4 for iam'],
      ['iam-query', 'SigV4 for iam'],
      ['sts', 'SigV4 for sts'],
      ['sts-query', 'SigV4 for sts'],
      ['s3', 'SigV4 or SigV2 for s3, or none: step 4 of its pipeline'],
    ]);
    expect(ROUTES.at(-1)).toMatchObject({ hosts: 'any', path: 'any' });
  });

  test.each([
    ['/health/live?x', 'health-live'],
    ['/health/live/', 'health'],
    ['/health', 'health'],
    ['/healthy', 's3'],
    ['/metrics', 'metrics'],
    ['/metrics/', 'metrics-below'],
    ['/holdfast-admin/v1/accounts?x=/', 'operator'],
    ['/holdfast-admin/v1/', 'operator'],
    ['/holdfast-admin/v1?x', 'operator-base'],
    ['/holdfast-admin/v2/accounts', 'operator-versions'],
    ['/holdfast-admin', 'operator-versions'],
    ['/holdfast-admins', 's3'],
    ['/%68ealth/live', 's3'],
    ['http://host/metrics', 's3'],
    ['/api/v1/openapi.json', 'management-document'],
    ['/api/v1/docs', 'management-docs'],
    ['/api/v1/docs/start.js', 'management-docs'],
    ['/api/v1/docsx', 'management'],
    ['/api/v1/password-resets', 'password-resets'],
    ['/api/v1', 'management'],
    ['/api/v1/members?x', 'management'],
    ['/api/v2', 's3'],
    ['/api', 's3'],
    ['/', 's3'],
    ['*', 's3'],
  ])('%s goes to %s', (uri, name) => {
    expect(nameOf(ROUTES, { uri })).toBe(name);
    expect(nameOf(ROUTES, { uri, hasBucketHost: true })).toBe('s3');
  });
});

describe('the query protocol', () => {
  const form = { method: 'POST', headers: { 'content-type': `${FORM}; charset=utf-8` } };
  const signed = (service: string, changes: object = {}) =>
    nameOf(ROUTES, { ...form, headers: { ...form.headers, authorization: signedFor(service), ...changes } });

  test('a POST / form that is signed for iam goes to it, any other POST / to S3', () => {
    expect(['iam', 's3', 'ec2'].map((service) => signed(service))).toEqual(['iam', 's3', 's3']);
    expect(nameOf(ROUTES, form)).toBe('s3');
    expect(signed('iam', { 'content-type': 'multipart/form-data' })).toBe('s3');
    const headers = { ...form.headers, authorization: signedFor('iam') };
    expect(nameOf(ROUTES, { ...form, headers, hasBucketHost: true })).toBe('s3');
    expect(nameOf(ROUTES, { ...form, headers, method: 'PUT' })).toBe('s3');
    expect(nameOf(ROUTES, { ...form, headers, uri: '/bucket' })).toBe('s3');
  });

  test('so does a GET /, also where the query says for what it is signed', () => {
    const uri = '/?Action=GetUser';
    expect(nameOf(ROUTES, { uri, headers: { authorization: signedFor('iam') } })).toBe('iam-query');
    const presigned = (service: string, slash: string) =>
      `${uri}&X-Amz-Credential=${['KEY', '20260101', 'us-east-1', service, 'aws4_request'].join(slash)}&X-Amz-Date=x`;
    expect(['/', '%2F', '%2f'].map((slash) => nameOf(ROUTES, { uri: presigned('iam', slash) }))).toEqual(
      Array(3).fill('iam-query'),
    );
    expect(nameOf(ROUTES, { uri: presigned('s3', '%2F') })).toBe('s3');
    expect(nameOf(ROUTES, { uri })).toBe('s3');
  });
});

describe('other services', () => {
  const hosts = 'without-bucket';
  const answerOf = (body: string) => ({ status: 200, contentType: 'text/plain', body });
  /** As extensions 1.1 has it: credentials in the header, and a 401 that asks for them. */
  const basic: AuthenticationPolicy<{ user: string }> = {
    name: 'Basic',
    async authenticate(_deps, { headers }) {
      const [, sent = ''] = headers.values.authorization?.split('Basic ') ?? [];
      const [user, password] = Buffer.from(sent, 'base64').toString().split(':');
      if (user && password === 'right') return { user };
      throw new AppError('AccessDenied', { status: 401, headers: { 'WWW-Authenticate': 'Basic' } });
    },
  };
  const accountApi = createJsonService<{ user: string }>({
    bodyBytesMax: 1000,
    async plugin(app) {
      app.get('/api/v1/me', async (request) => request.getDecorator('caller'));
    },
  });
  const rows: readonly ServiceRoute[] = [
    serviceRow(
      'account-api',
      { hosts, path: { within: '/api/v1' } },
      {
        authentication: basic,
        logLevel: 'info',
        answer: ({ exchange, caller }) =>
          accountApi.answer({ method: 'GET', url: exchange.uri, body: Buffer.alloc(0), caller }),
        renderError: renderJsonError,
      },
    ),
    serviceRow(
      'console',
      { hosts, path: { within: '/console' } },
      {
        authentication: anybody,
        logLevel: 'debug',
        answer: async () => ({ ...answerOf('<html>'), contentType: 'text/html' }),
        renderError: renderJsonError,
      },
    ),
    ...ROUTES,
  ];

  let world: GatewayWorld;
  beforeAll(async () => {
    world = await openGatewayWorld({ deps: { routes: rows } });
  });
  afterAll(async () => {
    await world.close();
    expect(world.faults()).toEqual([]);
  });

  async function ask(path: string, options: RequestInit = {}) {
    const answer = await fetch(world.endpoint + path, options);
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  }

  test('an authentication policy refuses, or gives the service the caller', async () => {
    const refused = await ask('/api/v1/me');
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Basic']);
    const headers = { authorization: `Basic ${btoa('ann:right')}` };
    expect(await ask('/api/v1/me', { headers })).toMatchObject({ status: 200, text: '{"user":"ann"}' });
    expect(await ask('/api/v1/you', { headers })).toMatchObject({ status: 404 });
  });

  test('a page is public, and the rest stays as before', async () => {
    expect(await ask('/console/index.html')).toMatchObject({ status: 200, text: '<html>' });
    expect((await ask('/health/live')).status).toBe(200);
    expect((await ask('/consoles')).text).toMatch(/^<\?xml/);
  });
});
