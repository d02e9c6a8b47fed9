// The MoveObjectResult (service 2.6, extensions 2.1): an entry for each version and delete marker that was renamed,
// or one with an Error for a key of which nothing was, and the number of those that were.
import { XML_DECLARATION, xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import type { MoveResult } from '../../../ports/metadata/moves.ts';
import { type AppError, ERRORS } from '../../../types/errors.ts';
import { explainMoveRefusal } from '../../../types/move-refusals.ts';
import type { ObjectKey } from '../../../types/names.ts';
import type { MoveError } from '../../../types/records/job-record.ts';
import { mayHaveOlderVersions, type Versioning } from '../../../types/versioning.ts';
import type { ItemRecord } from '../access-record.ts';
import type { OperationResult } from '../operation.ts';
import { s3Document } from '../request/vendor.ts';

export interface MovedKey {
  from: ObjectKey;
  to: string;
  result: MoveResult;
}

const ROOT = 'MoveObjectResult';

/** Of the request, and of each of its keys. */
export const MOVE_LOG_NAME = 'REST.MOVE.OBJECT';

/** A key may have thousands of versions, with two keys of some kilobytes in each entry: so much of it is held at once. */
const TEXT_CHARACTERS = 64 * 1024;

interface Telling {
  /** Leaves only errors. */
  isQuiet: boolean;
  versioning: Versioning;
}

/** The document of one key: whole where it is short, else piece by piece. */
export function moveBody(moved: MovedKey, telling: Telling): NonNullable<OperationResult['body']> {
  const moveCount = Array.isArray(moved.result) ? moved.result.length : 0;
  const texts = gather(documentParts(moved, { moveCount, ...telling }));
  const [first, second] = [texts.next(), texts.next()];
  if (second.done) return { kind: 'xml', text: `${XML_DECLARATION}${first.value}` };
  async function* all() {
    yield first.value as string;
    yield second.value as string;
    yield* texts;
  }
  return { kind: 'xml-stream', texts: all(), whenBroken: (error) => brokenMoveEnd(error, moveCount) };
}

function* documentParts(
  moved: MovedKey,
  { moveCount, ...telling }: Telling & { moveCount: number },
): Generator<string, void> {
  yield START;
  yield* entriesOf(moved, telling);
  yield moveDocumentEnd(moveCount);
}

/** The entries of these keys, in texts; an empty one if there are none. */
export function moveEntries(keys: readonly MovedKey[], telling: Telling): Generator<string, void> {
  function* all() {
    for (const moved of keys) yield* entriesOf(moved, telling);
  }
  return gather(all());
}

/** Joins what is short to pieces that are worth a write. */
function* gather(parts: Iterable<string>): Generator<string, void> {
  let text = '';
  for (const part of parts) {
    text += part;
    if (text.length < TEXT_CHARACTERS) continue;
    yield text;
    text = '';
  }
  yield text;
}

const END = `</${ROOT}>`;
const START = s3Document(ROOT).slice(XML_DECLARATION.length, -END.length);

/** The beginning of that of one key, behind the declaration. */
export function moveKeyDocumentHead(): string {
  return START;
}

/** The beginning of a prefix's, behind the declaration, and its end. */
export function moveDocumentHead(prefixes: { from: string; to: string }): string {
  return START + xmlText('SourcePrefix', prefixes.from) + xmlText('DestinationPrefix', prefixes.to);
}

/** `unlistedErrorCount`: of keys that did not move, those that no entry names. */
export function moveDocumentEnd(moveCount: number, unlistedErrorCount = 0): string {
  const unlisted = unlistedErrorCount > 0 ? xmlText('UnlistedErrorCount', unlistedErrorCount) : '';
  return unlisted + xmlText('MoveCount', moveCount) + END;
}

/** The end of a document that could not be brought to its own: what was moved so far is, and the rest goes on. */
export function brokenMoveEnd({ code, message }: AppError, moveCount: number): string {
  return xmlElement('Error', xmlText('Code', code), xmlText('Message', message)) + moveDocumentEnd(moveCount);
}

function* entriesOf(
  { from, to, result }: MovedKey,
  { isQuiet, versioning }: Telling,
): Generator<string, void> {
  if (!Array.isArray(result)) {
    const versionId = result.kind === 'blocked' ? result.versionId : undefined;
    yield moveErrorEntry({
      sourceKey: from,
      destinationKey: to,
      ...explainMoveRefusal(result),
      ...(versionId !== undefined && { versionId }),
    });
    return;
  }
  if (isQuiet) return;
  const keys = xmlText('SourceKey', from) + xmlText('DestinationKey', to);
  if (!mayHaveOlderVersions(versioning)) yield xmlElement('MoveObject', keys);
  else for (const id of result) yield xmlElement('MoveObject', keys, xmlText('VersionId', id));
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

/** What the request's record keeps of a key: one line of a bucket's log (extensions 4). */
export function moveItem({ from, result }: MovedKey): ItemRecord {
  const item = { logName: MOVE_LOG_NAME, key: from };
  if (Array.isArray(result)) return { ...item, status: 200 };
  const { code } = explainMoveRefusal(result);
  return { ...item, status: ERRORS[code].status, errorCode: code };
}
