// How a form wants to be answered: success_action_status and success_action_redirect (AWS "POST Object"; s3-behaviour 18).
import { bytesToText, percentEncode, textToBytes } from '../../../base/text/uri.ts';
import type { ObjectKey } from '../../../types/names.ts';
import type { FormFields } from './form-fields.ts';

export interface SuccessAction {
  readonly status: 200 | 201 | 204;
  /** Where the browser is sent instead. */
  readonly redirect?: string;
}

const VISIBLE = /^[\x21-\x7e]+$/;

/** AWS takes no notice of a status that it does not know, and of what is no URL. */
export function successActionOf(fields: FormFields): SuccessAction {
  const status = fields.get('success_action_status')?.value;
  const url = (fields.get('success_action_redirect') ?? fields.get('redirect'))?.value;
  const redirect = url === undefined ? undefined : webUrl(url);
  return {
    status: status === '200' || status === '201' ? (Number(status) as 200 | 201) : 204,
    ...(redirect !== undefined && { redirect }),
  };
}

function webUrl(bytes: string): string | undefined {
  const text = bytesToText(bytes);
  if (text === undefined || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  return VISIBLE.test(text) ? text : url.href;
}

/** The URL with what was uploaded, in its query, encoded as a form. */
export function redirectTo(url: string, uploaded: { bucket: string; key: ObjectKey; etag: string }): string {
  const fragmentAt = url.indexOf('#');
  const [before, fragment] =
    fragmentAt === -1 ? [url, ''] : [url.slice(0, fragmentAt), url.slice(fragmentAt)];
  const key = percentEncode(textToBytes(uploaded.key)).replaceAll('%20', '+');
  const query = `bucket=${uploaded.bucket}&key=${key}&etag=${percentEncode(uploaded.etag)}`;
  return `${before}${before.includes('?') ? '&' : '?'}${query}${fragment}`;
}
