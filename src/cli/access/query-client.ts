// The command line tool's side of IAM and STS: the query protocol, one signed form at a time (AWS "Making query requests").
// An error answer is a Refusal with the code and the message of the server.

import { Refusal } from '../../base/refusal.ts';
import { percentEncode, textToBytes } from '../../base/text/uri.ts';
import { childOf, childrenOf, textOf, type XmlElement } from '../../base/xml/parse-xml.ts';
import type { ClientOptions } from '../operator-client.ts';
import { readDocument } from '../s3-client.ts';
import { parseEndpoint, sendRequest } from '../send-request.ts';
import { signRequest } from '../sign-request.ts';

const VERSIONS = { iam: '2010-05-08', sts: '2011-06-15' } as const;

/** A list becomes `Name.member.1` and so on; what is undefined is not sent. */
export type Parameters = Readonly<
  Record<
    string,
    string | number | boolean | readonly (string | Readonly<Record<string, string>>)[] | undefined
  >
>;

/** The server has answered with an error. */
export class QueryRefusal extends Refusal {
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${message} (${code})`);
    this.code = code;
  }
}

/** Throws {@link QueryRefusal} for an error answer, and a Refusal where there was none. */
export interface QueryClient {
  /** Resolves with the element of the result, or an empty one where the action has none. */
  iam(action: string, parameters?: Parameters): Promise<XmlElement>;
  sts(action: string, parameters?: Parameters): Promise<XmlElement>;
  /** The members of a list, of all its pages. */
  list(action: string, listName: string, parameters?: Parameters): Promise<XmlElement[]>;
}

export function createQueryClient(options: ClientOptions): QueryClient {
  const base = parseEndpoint(options.endpoint);

  async function call(service: 'iam' | 'sts', action: string, parameters: Parameters): Promise<XmlElement> {
    const body = encodeForm({ Action: action, Version: VERSIONS[service], ...parameters });
    const { credentials, nowMs } = options;
    const signed = signRequest({
      method: 'POST',
      host: base.host,
      path: '/',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
      body,
      service,
      credentials,
      nowMs: nowMs(),
    });
    const headers = { ...signed, 'content-length': String(Buffer.byteLength(body)) };
    const answer = await sendRequest(options, { method: 'POST', path: '/', headers, body });
    const text = await answer.text();
    if (answer.status >= 400) throw refusalOf(text, answer.status);
    const root = readDocument(text);
    return childOf(root, `${action}Result`) ?? { ...root, children: [], text: '' };
  }

  const client: QueryClient = {
    iam: (action, parameters = {}) => call('iam', action, parameters),
    sts: (action, parameters = {}) => call('sts', action, parameters),
    async list(action, listName, parameters = {}) {
      const members: XmlElement[] = [];
      for (let marker: string | undefined; ; ) {
        const page = await client.iam(action, { ...parameters, Marker: marker });
        members.push(...membersOf(page, listName));
        marker = textOf(page, 'IsTruncated') === 'true' ? textOf(page, 'Marker') : undefined;
        if (marker === undefined) return members;
      }
    },
  };
  return client;
}

export function membersOf(parent: XmlElement, listName: string): XmlElement[] {
  const list = childOf(parent, listName);
  return list === undefined ? [] : childrenOf(list, 'member');
}

function refusalOf(text: string, status: number): Refusal {
  // A proxy on the way, say.
  if (text.trim() === '') return new Refusal(`refused (${status})`);
  const root = readDocument(text);
  const error = childOf(root, 'Error') ?? root;
  return new QueryRefusal(textOf(error, 'Code') ?? String(status), textOf(error, 'Message') ?? 'refused');
}

function encodeForm(parameters: Parameters): string {
  return Object.entries(parameters)
    .flatMap(([name, value]) => pairsOf(name, value))
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .join('&');
}

function pairsOf(name: string, value: Parameters[string]): [name: string, value: string][] {
  if (value === undefined) return [];
  if (typeof value !== 'object') return [[name, String(value)]];
  return value.flatMap((item, index): [string, string][] => {
    const member = `${name}.member.${index + 1}`;
    if (typeof item === 'string') return [[member, item]];
    return Object.entries(item).map(([field, text]) => [`${member}.${field}`, text]);
  });
}

function encode(text: string): string {
  return percentEncode(textToBytes(text));
}
