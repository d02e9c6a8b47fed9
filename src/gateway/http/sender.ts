// Who says that they send a request, before anything is proved: for turns, and for nothing else.
import type { IncomingMessage } from 'node:http';
import type { SharePath } from '../../base/async/fair-share.ts';
import { addressGroupOf, type Tenant } from '../../types/tenant.ts';
import type { ClientViewer } from './client-view.ts';

const V4_CREDENTIAL = 'Credential=';
const V2_CREDENTIAL = 'AWS ';
const BASIC = /^Basic +/i;
const QUERY_CREDENTIAL = /[?&](?:X-Amz-Credential|AWSAccessKeyId)=([^&/%]{1,128})/i;
const KEY_END = /[/:,\s]/;
const KEY_CHARACTERS_MAX = 128;

/**
 * The client's address, the access key that it names, or its login and API key as they are sent ('' for none), and the account
 * that has proved itself on the connection before. Anybody may name a key: it counts for itself within that account, and before
 * one has proved itself within the address. A key that a presigned URL names is another than the same key in a header.
 * `tenant`: of the connection, which a proxy may share among clients.
 */
export function senderOf(
  { socket, headers, url = '' }: IncomingMessage,
  viewer: ClientViewer,
  tenant: Tenant | undefined,
): SharePath {
  const { authorization, 'x-forwarded-for': forwarded } = headers;
  const key = authorization === undefined ? keyOfQuery(url) : keyNamedIn(authorization);
  if (forwarded === undefined && tenant !== undefined) {
    const { account, address } = tenant;
    return account === undefined ? [address, within(address, key)] : [address, within(account, key), account];
  }
  const values = forwarded === undefined ? {} : { 'x-forwarded-for': String(forwarded) };
  const { remoteAddress } = viewer.view(socket, { values, sentNames: [], sentValues: [] });
  const address = addressGroupOf(remoteAddress);
  return [address, within(address, key)];
}

/** Who names no key is like all who name none. */
function within(owner: string, key: string): string {
  return key === '' ? '' : `${key} ${owner}`;
}

function keyOfQuery(url: string): string {
  const key = QUERY_CREDENTIAL.exec(url)?.[1];
  return key === undefined ? '' : `?${key}`;
}

function keyNamedIn(authorization: string): string {
  const basic = BASIC.exec(authorization.slice(0, KEY_CHARACTERS_MAX))?.[0];
  // With what stands behind the login, which others may know.
  if (basic !== undefined) return authorization.slice(basic.length, basic.length + KEY_CHARACTERS_MAX);
  const at = authorization.indexOf(V4_CREDENTIAL);
  const isV2 = at < 0 && authorization.startsWith(V2_CREDENTIAL);
  if (at < 0 && !isV2) return '';
  const from = isV2 ? V2_CREDENTIAL.length : at + V4_CREDENTIAL.length;
  const text = authorization.slice(from, from + KEY_CHARACTERS_MAX);
  return text.slice(0, Math.max(0, text.search(KEY_END)));
}
