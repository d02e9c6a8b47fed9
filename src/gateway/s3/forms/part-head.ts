// What the heads of a form say: the boundary in the request's Content-Type, name and file name in the Content-Disposition of a
// part (RFC 7578 4). Texts of bytes, one character each.
import { trimBlanks } from '../../../base/text/trim-blanks.ts';
import { percentDecode } from '../../../base/text/uri.ts';
import { AppError } from '../../../types/errors.ts';

export interface PartHead {
  readonly name: string;
  /** Without the folders that a client may send along; undefined where the part has none. */
  readonly fileName: string | undefined;
}

const FORM_TYPE = 'multipart/form-data';
/** RFC 2046 5.1.1 has fewer characters; clients take others, too. None ends in a space. */
const BOUNDARY = /^[\x20-\x7e]{0,69}[\x21-\x7e]$/;
/** `; name=value`: a token, or a text in quotes. */
const PARAMETER = /;[ \t]*([^\s=;"]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))[ \t]*/y;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** RFC 9110 5.5: no line has them. */
const NEVER_IN_LINE = /[\0\r\n]/;
/** What may stand behind the last parameter. */
const IDLE: ReadonlySet<string> = new Set([';', ' ', '\t']);
const EXTENDED = /^utf-8'[^']*'(.*)$/i;

/** PreconditionFailed where the body is no form, MalformedPOSTRequest where its boundary cannot be told. */
export function parseBoundary(contentType: string | undefined): string {
  const [type = '', parameters] = splitValue(contentType ?? '');
  if (type.toLowerCase() !== FORM_TYPE) {
    throw new AppError('PreconditionFailed', {
      message: 'At least one of the pre-conditions you specified did not hold',
      fields: { Condition: `Bucket POST must be of the enclosure-type ${FORM_TYPE}` },
    });
  }
  const boundary = readParameters(parameters)?.get('boundary');
  if (boundary === undefined || !BOUNDARY.test(boundary)) throw new AppError('MalformedPOSTRequest');
  return boundary;
}

/** MalformedPOSTRequest where it is not that of a named field. */
export function parsePartHead(lines: readonly string[]): PartHead {
  for (const line of lines) {
    const [headerName, value] = splitLine(line);
    if (headerName.toLowerCase() !== 'content-disposition') continue;
    const [disposition = '', rest] = splitValue(value);
    const parameters = readParameters(rest);
    const name = parameters?.get('name');
    if (disposition.toLowerCase() !== 'form-data' || name === undefined) break;
    const fileName = extendedValue(parameters?.get('filename*')) ?? parameters?.get('filename');
    return { name, fileName: fileName && lastSegment(fileName) };
  }
  throw new AppError('MalformedPOSTRequest');
}

/** Cut by hand: a pattern for all of it goes back and forth in a line of blanks, for the square of its length. */
function splitLine(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(colon, 0));
  if (!HEADER_NAME.test(name) || NEVER_IN_LINE.test(line)) throw new AppError('MalformedPOSTRequest');
  return [name, trimBlanks(line.slice(colon + 1))];
}

/** What stands before the first semicolon, and all from it on. */
function splitValue(value: string): [first: string, parameters: string] {
  const end = value.indexOf(';');
  return end === -1 ? [value.trim(), ''] : [value.slice(0, end).trim(), value.slice(end)];
}

/** By lower-case name; the first of each counts. Undefined where there is something else. */
function readParameters(text: string): Map<string, string> | undefined {
  const parameters = new Map<string, string>();
  let end = text.length;
  while (end > 0 && IDLE.has(text[end - 1] ?? '')) end--;
  for (let at = 0; at < end; ) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(text);
    if (match === null) return undefined;
    const [all, name = '', quoted, token] = match;
    at += all.length;
    // Only what must be escaped is: clients send paths with single backslashes.
    const value = quoted?.replace(/\\(["\\])/g, '$1') ?? token ?? '';
    if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), value);
  }
  return parameters;
}

/** RFC 8187, which forms should not use and some clients do. */
function extendedValue(text: string | undefined): string | undefined {
  const encoded = EXTENDED.exec(text ?? '')?.[1];
  return encoded === undefined ? undefined : percentDecode(encoded);
}

function lastSegment(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}
