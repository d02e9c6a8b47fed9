import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteText, outcomeOf } from '../../../../tests/support/run/properties.ts';
import type { AnswerHeaders } from './object-headers.ts';
import { addResponseOverrides, RESPONSE_PARAMETERS } from './response-overrides.ts';

function overridden(request: {
  query?: string;
  headers?: Record<string, string>;
  isSigned?: boolean;
}): AnswerHeaders {
  const answer: AnswerHeaders = { 'Content-Type': 'text/plain', 'Content-Length': 3, ETag: '"e"' };
  addResponseOverrides(answer, {
    query: new Map(new URLSearchParams(request.query)),
    headers: request.headers ?? {},
    isSigned: request.isSigned ?? true,
  });
  return answer;
}

test('the six parameters of AWS replace the stored headers', () => {
  expect(RESPONSE_PARAMETERS).toHaveLength(6);
  const query = RESPONSE_PARAMETERS.map((name) => `${name}=new`).join('&');
  expect(overridden({ query })).toEqual({
    'Content-Type': 'new',
    'Content-Language': 'new',
    Expires: 'new',
    'Cache-Control': 'new',
    'Content-Disposition': 'new',
    'Content-Encoding': 'new',
    'Content-Length': 3,
    ETag: '"e"',
  });
});

test('text beyond Latin-1 is sent as UTF-8', () => {
  const value = overridden({ query: 'response-content-disposition=%E2%82%AC' })['Content-Disposition'];
  expect(Buffer.from(String(value), 'latin1').toString('utf8')).toBe('€');
});

test('other response-* parameters are ignored', () => {
  expect(overridden({ query: 'response-etag=x&versionId=null' }).ETag).toBe('"e"');
});

test('without a signature the parameters are refused, the headers are not', () => {
  expect(() => overridden({ query: 'response-expires=now', isSigned: false })).toThrowError(
    expect.objectContaining({ code: 'InvalidRequest' }),
  );
  const headers = { 'response-x-colour': 'red', 'response-constructor': 'blue' };
  expect(overridden({ headers, isSigned: false })).toMatchObject({ 'x-colour': 'red', constructor: 'blue' });
});

test('no shared cache keeps what a header has chosen', () => {
  for (const isSigned of [false, true]) {
    const varyOf = (headers: Record<string, string>) => overridden({ headers, isSigned }).Vary;
    expect(varyOf({ 'response-content-type': 'text/html' })).toBe('*');
    expect(varyOf({ 'response-content-type': 'text/html', 'response-vary': 'x' })).toBe('*');
    for (const headers of [{}, { 'content-type': 'a/b' }, { 'response-server': 'passed over' }])
      expect(varyOf(headers)).toBeUndefined();
  }
  // Parameters are in the URL.
  expect(overridden({ query: 'response-content-type=text/html' }).Vary).toBeUndefined();
});

test('any response-* header is echoed, except those of framing and of the service', () => {
  const headers = Object.fromEntries(
    [
      'content-type',
      'etag',
      'x-own',
      'content-length',
      'transfer-encoding',
      'connection',
      'set-cookie',
      'x-amz-request-id',
      'x-std-version-id',
      '',
    ].map((name) => [`response-${name}`, 'new']),
  );
  expect(overridden({ headers })).toEqual({
    'Content-Type': 'new',
    ETag: 'new',
    'x-own': 'new',
    'Content-Length': 3,
    Vary: '*',
  });
});

test.each([
  ...[
    'Content-Length',
    'Transfer-Encoding',
    'Trailer',
    'Content-Range',
    'Accept-Ranges',
    'Connection',
    'Keep-Alive',
  ],
  ...[
    'Upgrade',
    'Via',
    'Alt-Svc',
    'Server',
    'Date',
    'Age',
    'Allow',
    'Location',
    'Refresh',
    'Retry-After',
    'Status',
  ],
  ...[
    'Set-Cookie',
    'Set-Cookie2',
    'Clear-Site-Data',
    'WWW-Authenticate',
    'Proxy-Authenticate',
    'Link',
    'NEL',
  ],
  ...['Strict-Transport-Security', 'Content-Security-Policy', 'X-Frame-Options', 'X-Content-Type-Options'],
  ...[
    'Referrer-Policy',
    'Permissions-Policy',
    'Cross-Origin-Resource-Policy',
    'Service-Worker-Allowed',
    'SourceMap',
  ],
  ...['Access-Control-Allow-Origin', 'Access-Control-Allow-Credentials', 'Timing-Allow-Origin', 'Report-To'],
  ...['X-Accel-Redirect', 'X-Sendfile', 'Surrogate-Control', 'X-Forwarded-Host', 'Sec-Anything'],
  ...['X-Amz-Version-Id', 'X-Std-Id-2', 'X-Svc-Anything', 'X-Wasabi-Anything'],
])("Response-%s sets nothing: what it says is the server's to say", (name) => {
  const headers = { [`response-${name.toLowerCase()}`]: 'forged' };
  expect(overridden({ headers })).toEqual(overridden({}));
});

test.each(['a\r\nb', 'a\nb', 'a\0b', 'a\u007fb'])('%j is no header value', (value) => {
  const refusal = expect.objectContaining({ code: 'InvalidArgument' });
  expect(() => overridden({ query: `response-expires=${encodeURIComponent(value)}` })).toThrowError(refusal);
  expect(() => overridden({ headers: { 'response-x': value } })).toThrowError(refusal);
});

test('any value can be sent as a header, or is refused', () => {
  const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9a-z-]{0,12}$/);
  const text = fc.oneof(byteText, fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(
      name,
      byteText,
      fc.constantFrom(...RESPONSE_PARAMETERS),
      text,
      (target, sent, parameter, asked) => {
        const answer: AnswerHeaders = {};
        const outcome = outcomeOf(() =>
          addResponseOverrides(answer, {
            query: new Map([[parameter, asked]]),
            headers: { [`response-${target}`]: sent },
            isSigned: true,
          }),
        );
        if ('code' in outcome) expect(outcome.code).toBe('InvalidArgument');
        for (const value of Object.values(answer)) expect(String(value)).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
      },
    ),
  );
});
