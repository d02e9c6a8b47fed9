// The MoveObjectResult (service.txt 2.6, extensions.md 2.1): an entry for each version and delete marker that was renamed,
// or one with an Error for a key of which nothing was, and the number of those that were.
import { XML_DECLARATION, xmlElement, xmlText } from '../../lib/xml-writer.ts';
import { type AppError, ERRORS } from '../../model/errors.ts';
import { explainMoveRefusal } from '../../model/move-refusals.ts';
import type { ObjectKey } from '../../model/names.ts';
import type { MoveError } from '../../model/records/job-record.ts';
import { mayHaveOlderVersions, type Versioning } from '../../model/versioning.ts';
import type { MoveResult } from '../../ports/extension-calls.ts';
import type { ItemRecord } from './access-record.ts';
import { s3Document } from './vendor.ts';

export interface MovedKey {
  from: ObjectKey;
  to: string;
  result: MoveResult;
}

const ROOT = 'MoveObjectResult';

/** The whole document of one key. */
export function moveDocument(entries: string, moveCount: number): string {
  return s3Document(ROOT, entries, xmlText('MoveCount', moveCount));
}

/** The beginning of a prefix's, behind the declaration, and its end. */
export function moveDocumentHead(prefixes: { from: string; to: string }): string {
  const names = [xmlText('SourcePrefix', prefixes.from), xmlText('DestinationPrefix', prefixes.to)];
  const whole = s3Document(ROOT, ...names).slice(XML_DECLARATION.length);
  return whole.slice(0, -END.length);
}

const END = `</${ROOT}>`;

export function moveDocumentEnd(moveCount: number): string {
  return xmlText('MoveCount', moveCount) + END;
}

/** The end of a document that could not be brought to its own: what was moved so far is, and the rest goes on. */
export function brokenMoveEnd({ code, message }: AppError, moveCount: number): string {
  return xmlElement('Error', xmlText('Code', code), xmlText('Message', message)) + moveDocumentEnd(moveCount);
}

/** The entries of one key: `isQuiet` leaves only errors. */
export function moveEntries(
  { from, to, result }: MovedKey,
  { isQuiet, versioning }: { isQuiet: boolean; versioning: Versioning },
): string {
  if (!Array.isArray(result)) {
    const versionId = result.kind === 'blocked' ? result.versionId : undefined;
    return moveErrorEntry({
      ...{ sourceKey: from, destinationKey: to, ...explainMoveRefusal(result) },
      ...(versionId !== undefined && { versionId }),
    });
  }
  if (isQuiet) return '';
  const keys = xmlText('SourceKey', from) + xmlText('DestinationKey', to);
  if (!mayHaveOlderVersions(versioning)) return xmlElement('MoveObject', keys);
  return result.map((id) => xmlElement('MoveObject', keys, xmlText('VersionId', id))).join('');
}

export function moveErrorEntry(error: MoveError): string {
  return xmlElement(
    'MoveObject',
    xmlText('SourceKey', error.sourceKey),
    xmlText('DestinationKey', error.destinationKey),
    xmlText('VersionId', error.versionId),
    xmlElement('Error', xmlText('Code', error.code), xmlText('Message', error.message)),
  );
}

/** What the request's record keeps of a key: one line of a bucket's log (extensions.md 4). */
export function moveItem({ from, result }: MovedKey): ItemRecord {
  if (Array.isArray(result)) return { key: from, status: 200 };
  const { code } = explainMoveRefusal(result);
  return { key: from, status: ERRORS[code].status, errorCode: code };
}
