// The CORS answers: fixed and permissive, on every answer to a request with an Origin, errors included
// (service 4.4). Access policies are still enforced.

const CORS_HEADERS: readonly string[] = [
  'Access-Control-Allow-Headers',
  '*',
  'Access-Control-Allow-Methods',
  'GET, HEAD, POST, PUT, DELETE, MOVE, OPTIONS',
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  '*',
  'Access-Control-Max-Age',
  '86400',
];

const NONE: readonly string[] = [];

/** Names and values in turn. */
export function corsHeaders(requestHeaders: Readonly<Record<string, string>>): readonly string[] {
  return requestHeaders.origin === undefined ? NONE : CORS_HEADERS;
}
