// Requests of the query protocol to a server, signed by the command line's own signer, and what their answers say.
import { signRequest } from '../../../src/cli/sign-request.ts';

export interface IamAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly xml: string;
  /** Of an error. */
  readonly code: string | undefined;
  readonly message: string | undefined;
  /** The texts of all elements of a name, in order. */
  texts(name: string): string[];
  /** The text of the only one. */
  text(name: string): string | undefined;
}

export interface IamCall {
  readonly credentials?: { accessKey: string; secretKey: string };
  readonly service?: 'iam' | 'sts';
  /** Of temporary credentials. */
  readonly token?: string;
  /** Default POST with a form. */
  readonly method?: 'GET' | 'POST';
}

type Server = { readonly endpoint: string; readonly accessKey: string; readonly secretKey: string };

/** `parameters`: an object, or a form as it is sent. */
export async function callIam(
  server: Server,
  parameters: Readonly<Record<string, string | number | boolean>> | string,
  { credentials = server, service = 'iam', method = 'POST', token }: IamCall = {},
): Promise<IamAnswer> {
  const form = typeof parameters === 'string' ? parameters : encodeForm(parameters);
  const isPost = method === 'POST';
  const query = isPost ? '' : form;
  const body = isPost ? form : '';
  const signed = signRequest({
    method,
    host: new URL(server.endpoint).host,
    path: '/',
    query,
    body,
    service,
    credentials,
    headers: {
      ...(isPost && { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }),
      ...(token !== undefined && { 'x-amz-security-token': token }),
    },
    nowMs: Date.now(),
  });
  const { host: _, ...headers } = signed;
  const url = `${server.endpoint}/${query === '' ? '' : `?${query}`}`;
  return readAnswer(await fetch(url, { method, headers, ...(isPost && { body }) }));
}

/** Sorted, as signatures of queries have it. */
function encodeForm(parameters: Readonly<Record<string, string | number | boolean>>): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&');
}

export async function readAnswer(answer: Response): Promise<IamAnswer> {
  const xml = await answer.text();
  const texts = (name: string) =>
    [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text = '']) =>
      text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
    );
  const text = (name: string) => texts(name)[0];
  const isError = answer.status >= 400;
  return {
    status: answer.status,
    headers: answer.headers,
    xml,
    code: isError ? text('Code') : undefined,
    message: isError ? text('Message') : undefined,
    texts,
    text,
  };
}
