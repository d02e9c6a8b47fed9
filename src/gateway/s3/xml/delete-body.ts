// The body of DeleteObjects: which keys and versions, and how much of an answer.
import type { Steps } from '../../../base/async/steps.ts';
import { childrenOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import type { DeleteItem } from '../../../ports/metadata/versions.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { parseObjectKey } from '../../../types/names.ts';
import type { WriteConditions } from '../../../types/preconditions.ts';
import { isVersionId } from '../request/arguments.ts';
import { ELEMENT_CONDITION_CHARACTERS_MAX, readConditions } from '../request/write-conditions.ts';
import { readEach, readXmlBody, requiredText } from './xml-body.ts';

export interface DeleteRequest {
  isQuiet: boolean;
  entries: DeleteEntry[];
}

export type DeleteEntry =
  /** `etag`: its condition on the ETag as the document has it. */
  | ({ kind: 'item'; etag?: string } & DeleteItem)
  /** What cannot name anything that is stored: refused in the answer, beside the others' results. */
  | { kind: 'refused'; key: string; versionId?: string; code: 'KeyTooLongError' | 'NoSuchVersion' };

/** 1 to 1000 entries. MissingRequestBodyError, MalformedXML. */
export function* parseDeleteBody(body: Uint8Array): Steps<DeleteRequest> {
  if (body.length === 0) throw new AppError('MissingRequestBodyError');
  return yield* readXmlBody(body, 'Delete', function* (root): Steps<DeleteRequest> {
    const objects = childrenOf(root, 'Object');
    if (objects.length === 0 || objects.length > LIMITS.deleteObjectsKeysMax) {
      throw new XmlError(`${objects.length} objects`);
    }
    const isQuiet = textOf(root, 'Quiet')?.trim().toLowerCase() === 'true';
    return { isQuiet, entries: yield* readEach(objects, parseEntry) };
  });
}

function parseEntry(element: XmlElement): DeleteEntry {
  const text = requiredText(element, 'Key');
  const key = parseObjectKey(text);
  if (key === undefined) throw new XmlError('an empty Key');
  const versionId = textOf(element, 'VersionId');
  if (key === 'too-long') {
    const refused: DeleteEntry = { kind: 'refused', key: text, code: 'KeyTooLongError' };
    return versionId === undefined ? refused : { ...refused, versionId };
  }
  const conditions = parseConditions(element);
  const etag = textOf(element, 'ETag');
  const item: DeleteEntry = {
    kind: 'item',
    key,
    ...(conditions && { conditions }),
    ...(etag !== undefined && { etag }),
  };
  if (versionId === undefined) return item;
  if (isVersionId(versionId)) return { ...item, versionId };
  // AWS takes any text, the empty one too, for a version that does not exist.
  return { kind: 'refused', key, versionId, code: 'NoSuchVersion' };
}

/** s3-behaviour 26. */
function parseConditions(element: XmlElement): WriteConditions | undefined {
  const given = {
    ifMatch: textOf(element, 'ETag'),
    ifMatchLastModifiedMs: textOf(element, 'LastModifiedTime'),
    ifMatchSizeBytes: textOf(element, 'Size'),
  };
  const refuse = (condition: string, text: string) => new XmlError(`${condition} of ${text}`);
  return readConditions(given, refuse, ELEMENT_CONDITION_CHARACTERS_MAX);
}
