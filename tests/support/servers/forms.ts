// Forms as browsers send them, written from RFC 7578 and AWS's "Creating a POST policy", not from the server's code: policies,
// their signatures, and the body. Not here: what the server should do with them.
import { createHmac } from 'node:crypto';
import type { Access, RawAnswer } from './raw-s3.ts';
import { sendBare } from './raw-s3.ts';

export type Fields = readonly (readonly [name: string, value: string])[];

export interface Form {
  fields: Fields;
  /** Its content, or parts of the body that stand in its place. */
  file?: Buffer | string;
  /** Undefined: as here; null: none. */
  fileName?: string | null;
  /** Behind the file. */
  behind?: Fields;
}

export const BOUNDARY = 'a-boundary-of-a-form';

/** A field's part, or the file's. */
export function partOf(name: string, value: Buffer | string, fileName?: string): Buffer {
  const named = fileName === undefined ? '' : `; filename="${fileName}"`;
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${named}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(value), Buffer.from('\r\n')]);
}

export const END = `--${BOUNDARY}--\r\n`;

export function formBody({ fields, file = 'content', fileName = 'a file.txt', behind = [] }: Form): Buffer {
  return Buffer.concat([
    ...fields.map(([name, value]) => partOf(name, value)),
    partOf('file', file, fileName ?? undefined),
    ...behind.map(([name, value]) => partOf(name, value)),
    Buffer.from(END),
  ]);
}

export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** Sends a body as a form, unsigned but for its fields. */
export function postBody(
  access: Pick<Access, 'endpoint'>,
  bucket: string,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const length = { 'content-length': String(body.length) };
  const all = { 'content-type': FORM_TYPE, ...length, ...headers };
  return sendBare(access, { method: 'POST', path: `/${bucket}`, headers: all, body });
}

export const postForm = (access: Pick<Access, 'endpoint'>, bucket: string, form: Form) =>
  postBody(access, bucket, formBody(form));

/** A policy that is good for an hour, with these conditions; `others`: what else it has, or has instead. */
export function policyOf(conditions: unknown, others: Record<string, unknown> = {}): string {
  const expiration = new Date(Date.now() + 3_600_000).toISOString();
  return Buffer.from(JSON.stringify({ expiration, conditions, ...others })).toString('base64');
}

/** The fields by which a policy is signed, the policy among them. */
export function signPolicyV2({ accessKey, secretKey }: Access, policy: string): Fields {
  const signature = createHmac('sha1', secretKey).update(policy).digest('base64');
  return [
    ['AWSAccessKeyId', accessKey],
    ['policy', policy],
    ['signature', signature],
  ];
}

/** What a policy that is signed by version 4 must have conditions for, besides its own fields. */
export function signerFields({ accessKey }: Access): Fields {
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  return [
    ['x-amz-algorithm', 'AWS4-HMAC-SHA256'],
    ['x-amz-credential', `${accessKey}/${date.slice(0, 8)}/us-east-1/s3/aws4_request`],
    ['x-amz-date', date],
  ];
}

/** All fields of a signed form: those given, each with a condition that it is as it is, and of the signature. */
export function signForm(
  access: Access,
  bucket: string,
  fields: Fields,
  conditions: readonly unknown[] = fields.map(([name, value]) => ({ [name]: value })),
): Fields {
  const signer = signerFields(access);
  const own = signer.map(([name, value]) => ({ [name]: value }));
  const policy = policyOf([{ bucket }, ...own, ...conditions]);
  return [...fields, ...signPolicyV4(access, policy, signer)];
}

/** The signer's fields, the policy and its signature. */
export function signPolicyV4({ secretKey }: Access, policy: string, signer: Fields): Fields {
  const [, date = '', region = '', service = '', terminal = ''] = (signer[1]?.[1] ?? '').split('/');
  const key = [date, region, service, terminal].reduce<string | Buffer>(
    (secret, text) => createHmac('sha256', secret).update(text).digest(),
    `AWS4${secretKey}`,
  );
  const signature = createHmac('sha256', key).update(policy).digest('hex');
  return [...signer, ['policy', policy], ['x-amz-signature', signature]];
}
