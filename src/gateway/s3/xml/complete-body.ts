// The part list of CompleteMultipartUpload. Whether the parts exist and are in order is the shard's to say.
import type { Steps } from '../../../base/async/steps.ts';
import { childrenOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import type { CompletePart } from '../../../ports/metadata/uploads.ts';
import { CHECKSUM_ALGORITHMS } from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { invalidArgument } from '../request/arguments.ts';
import { isDigest } from '../request/checksum-headers.ts';
import { readEach, readXmlBody, requiredText } from './xml-body.ts';

const CHECKSUM_ELEMENTS = CHECKSUM_ALGORITHMS.map((algorithm) => ({
  algorithm,
  name: `Checksum${algorithm}`,
}));

/** 1 to 10,000 parts. InvalidRequest without a body, MalformedXML, BadDigest for a malformed checksum. */
export function* parseCompleteBody(body: Uint8Array): Steps<CompletePart[]> {
  if (body.length === 0) {
    throw new AppError('InvalidRequest', { message: 'You must specify at least one part' });
  }
  const parts = yield* readXmlBody(body, 'CompleteMultipartUpload', (root) => {
    const parts = childrenOf(root, 'Part');
    if (parts.length === 0 || parts.length > LIMITS.partCountMax) {
      throw new XmlError(`${parts.length} parts`);
    }
    return readEach(parts, parsePart);
  });
  return withoutRepetitions(parts);
}

/** A part that is listed twice in a row in the same way counts once (AWS CompleteMultipartUpload). */
function withoutRepetitions(parts: readonly CompletePart[]): CompletePart[] {
  return parts.filter((part, at) => {
    const before = parts[at - 1];
    const isSame = before?.partNumber === part.partNumber && before.etag === part.etag;
    return !isSame || before.checksum?.value !== part.checksum?.value;
  });
}

function parsePart(element: XmlElement): CompletePart {
  const numberText = requiredText(element, 'PartNumber').trim();
  if (!/^[+-]?\d{1,9}$/.test(numberText)) throw new XmlError('PartNumber is no number');
  const partNumber = Number(numberText);
  if (partNumber < 1) {
    throw invalidArgument({ name: 'partNumber', value: numberText, message: 'PartNumber must be >= 1' });
  }
  const etag = requiredText(element, 'ETag').trim().replaceAll('"', '');
  if (partNumber > LIMITS.partCountMax) {
    throw new AppError('InvalidPart', { fields: { PartNumber: partNumber, ETag: etag } });
  }
  const part: CompletePart = { partNumber, etag };
  for (const { algorithm, name } of CHECKSUM_ELEMENTS) {
    const value = textOf(element, name)?.trim();
    if (value === undefined) continue;
    if (!isDigest(algorithm, value) || part.checksum !== undefined) {
      throw new AppError('BadDigest', { message: 'Invalid Base64 or multiple checksums present in request' });
    }
    part.checksum = { algorithm, value };
  }
  return part;
}
