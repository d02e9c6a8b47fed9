// What a header can carry on the wire: checked where a text becomes a header that did not come as one.
import { invalidArgument } from './arguments.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a header
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/;
/** RFC 9110 5.6.2 */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** InvalidArgument for CR, LF and other control characters. */
export function checkedHeaderValue(name: string, value: string): string {
  if (!CONTROL.test(value)) return value;
  throw invalidArgument({ name, value, message: 'Header value cannot be represented.' });
}

/** InvalidArgument for what no header can be called. */
export function checkedHeaderName(name: string): string {
  if (TOKEN.test(name)) return name;
  throw invalidArgument({ name, value: '', message: 'Header name cannot be represented.' });
}
