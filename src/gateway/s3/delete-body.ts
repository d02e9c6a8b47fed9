// The body of DeleteObjects: which keys and versions, and how much of an answer.
import { childrenOf, textOf, type XmlElement, XmlError } from '../../lib/xml.ts';
import { AppError } from '../../model/errors.ts';
import { LIMITS } from '../../model/limits.ts';
import { type ObjectKey, parseObjectKey, type VersionId } from '../../model/names.ts';
import { isVersionId } from './arguments.ts';
import { readXmlBody, requiredText } from './xml-body.ts';

export interface DeleteRequest {
  isQuiet: boolean;
  entries: DeleteEntry[];
}

export type DeleteEntry =
  | { kind: 'item'; key: ObjectKey; versionId?: VersionId }
  /** What cannot name anything that is stored: refused in the answer, beside the others' results. */
  | { kind: 'refused'; key: string; versionId?: string; code: 'KeyTooLongError' | 'NoSuchVersion' };

/** Conditions per key: to come with conditional writes, and never ignored until then. */
const CONDITIONS = ['ETag', 'LastModifiedTime', 'Size'];

/** 1 to 1000 entries. MissingRequestBodyError, MalformedXML, NotImplemented for conditions. */
export function parseDeleteBody(body: Uint8Array): DeleteRequest {
  if (body.length === 0) throw new AppError('MissingRequestBodyError');
  return readXmlBody(body, 'Delete', (root) => {
    const objects = childrenOf(root, 'Object');
    if (objects.length === 0 || objects.length > LIMITS.deleteObjectsKeysMax) {
      throw new XmlError(`${objects.length} objects`);
    }
    const isQuiet = textOf(root, 'Quiet')?.trim().toLowerCase() === 'true';
    return { isQuiet, entries: objects.map(parseEntry) };
  });
}

function parseEntry(element: XmlElement): DeleteEntry {
  if (element.children.some(({ name }) => CONDITIONS.includes(name))) throw new AppError('NotImplemented');
  const text = requiredText(element, 'Key');
  const key = parseObjectKey(text);
  if (key === undefined) throw new XmlError('an empty Key');
  const versionId = textOf(element, 'VersionId');
  if (key === 'too-long') {
    const refused: DeleteEntry = { kind: 'refused', key: text, code: 'KeyTooLongError' };
    return versionId === undefined ? refused : { ...refused, versionId };
  }
  if (versionId === undefined) return { kind: 'item', key };
  if (isVersionId(versionId)) return { kind: 'item', key, versionId };
  // AWS takes any text, the empty one too, for a version that does not exist.
  return { kind: 'refused', key, versionId, code: 'NoSuchVersion' };
}
