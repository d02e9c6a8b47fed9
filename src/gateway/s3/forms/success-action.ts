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
  const url = text === undefined || isHostLong(text) ? null : URL.parse(text);
  if (text === undefined || (url?.protocol !== 'http:' && url?.protocol !== 'https:')) return undefined;
  return VISIBLE.test(text) ? text : url.href;
}

/** DNS has no longer names. */
const HOST_UNITS_MAX = 253;
/** What makes a host one that is encoded by IDNA: other characters, and those behind a percent sign. */
const BEYOND_ASCII = /[^\p{ASCII}]|%/gu;

/**
 * Node encodes a host beyond ASCII in time that grows by the square of its length: 5000 characters take 60 ms.
 * None of these characters parts anything in a URL, so the host is as long where a letter stands for each.
 */
function isHostLong(text: string): boolean {
  return (URL.parse(text.replace(BEYOND_ASCII, 'z'))?.hostname.length ?? 0) > HOST_UNITS_MAX;
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
