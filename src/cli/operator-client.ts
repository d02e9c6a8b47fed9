// The command line tool's side of the operator API: one signed JSON request at a time. What it cannot do ends in a
// Refusal, whose message is what the person gets to read.
import { Refusal } from '../base/refusal.ts';
import { parseEndpoint, sendRequest } from './send-request.ts';
import { type Credentials, signRequest } from './sign-request.ts';

/** What the server has answered instead of what it was asked for. */
export class OperatorRefusal extends Refusal {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export interface OperatorClient {
  /**
   * `path` below /holdfast-admin/v1, its segments encoded; with a query, sorted and encoded, if there is one. Resolves with the JSON of the answer, {} for none. Throws
   * {@link OperatorRefusal} for an answer that is an error, and a Refusal where there was none.
   */
  call(method: string, path: string, body?: object): Promise<unknown>;
}

export interface ClientOptions {
  /** As `https://127.0.0.1:9000`. */
  endpoint: string;
  credentials: Credentials;
  /** PEM of a certificate to trust beside the usual ones: the self-signed one of the data folder. */
  certificate?: string | undefined;
  nowMs(): number;
}

interface Answer {
  status: number;
  text: string;
}

export function createOperatorClient(options: ClientOptions): OperatorClient {
  const base = parseEndpoint(options.endpoint);
  return {
    async call(method, path, body) {
      const text = body === undefined ? '' : JSON.stringify(body);
      const answer = await send({ base, method, path: `/holdfast-admin/v1${path}`, text, options });
      return readAnswer(answer, base);
    },
  };
}

async function send(message: {
  base: URL;
  method: string;
  path: string;
  text: string;
  options: ClientOptions;
}): Promise<Answer> {
  const { base, method, path, text, options } = message;
  const { credentials, nowMs } = options;
  const [plain = path, query = ''] = path.split('?');
  const asked = { method, host: base.host, path: plain, query, body: text };
  const signed = signRequest({ ...asked, credentials, nowMs: nowMs() });
  const headers = {
    ...signed,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
  };
  const { status, text: answered } = await sendRequest(options, { method, path, headers, body: text });
  return { status, text: await answered() };
}

function readAnswer({ status, text }: Answer, base: URL): unknown {
  let json: { error?: { code: string; message: string } };
  try {
    json = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new OperatorRefusal(`${base.origin} answered ${status}, but not as a Holdfast server does`, status);
  }
  if (status >= 400)
    throw new OperatorRefusal(`${json.error?.message ?? 'refused'} (${json.error?.code ?? status})`, status);
  return json;
}
