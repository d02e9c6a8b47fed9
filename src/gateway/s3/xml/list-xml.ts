// The pieces that listings share: names with or without percent-encoding, entries, owners, and the token that carries
// a listing on. Pages come from the shard in order; nothing is sorted or filtered here.
import { fromUtf8 } from '../../../base/bytes/bytes.ts';
import { isoSeconds } from '../../../base/text/http-dates.ts';
import { percentEncodePath, textToBytes } from '../../../base/text/uri.ts';
import { escapeXml } from '../../../base/xml/write-xml.ts';
import type { ListedObject } from '../../../ports/metadata/versions.ts';
import type { AccountId } from '../../../types/names.ts';
import type { VersionSummary } from '../../../types/version.ts';
import type { OperationContext } from '../context.ts';
import { invalidArgument } from '../request/arguments.ts';

/** Turns a key, prefix or marker into the text of an element. */
export type WriteName = (name: string) => string;

// biome-ignore lint/suspicious/noControlCharactersInRegex: keys hold any characters
const ASCII = /^[\u0000-\u007f]*$/;
const TOKEN_VERSION = '1';
const TOKEN = /^1[A-Za-z0-9_-]+$/;

/** How this answer writes names: as they are, or percent-encoded (encoding-type=url). */
export function nameWriter(isUrlEncoded: boolean): WriteName {
  return isUrlEncoded ? percentEncode : escapeXml;
}

/** RFC 3986 with "/" kept: %20 for a space, %2B for a plus (s3-behaviour 36). Needs no XML escaping. */
export function percentEncode(name: string): string {
  return ASCII.test(name) ? percentEncodePath(name) : percentEncodePath(textToBytes(name));
}

/** So much is written in one turn: some ms where every character of a name is written as another. */
const TURN_CHARACTERS = 256 * 1024;

/** What `write` makes of each item, one after the other, in turns of the caller's: names may be long. */
export async function writeInTurns<T>(
  context: Pick<OperationContext, 'turn'>,
  items: readonly T[],
  write: (item: T) => string,
  charactersMax = TURN_CHARACTERS,
): Promise<string> {
  let xml = '';
  let turnCharacters = 0;
  for (const item of items) {
    if (turnCharacters >= charactersMax) {
      await context.turn();
      turnCharacters = 0;
    }
    const text = write(item);
    xml += text;
    turnCharacters += text.length;
  }
  return xml;
}

/** `<Contents>` of each object. `owners`: from ownersXml, where the listing shows owners. */
export function contentsXml(
  context: Pick<OperationContext, 'turn'>,
  objects: readonly ListedObject[],
  options: { writeName: WriteName; owners?: ReadonlyMap<AccountId, string> },
): Promise<string> {
  const { writeName, owners } = options;
  return writeInTurns(context, objects, ({ key, summary }) => {
    const ownerXml = owners?.get(summary.owner) ?? '';
    return `<Contents><Key>${writeName(key)}</Key>${summaryXml(summary)}${ownerXml}<StorageClass>STANDARD</StorageClass></Contents>`;
  });
}

/** What a listing says of an object beside its names and owner. */
export function summaryXml({ modifiedAtMs, etag, sizeBytes, checksum }: VersionSummary): string {
  let xml = `<LastModified>${isoSeconds(modifiedAtMs)}</LastModified><ETag>&quot;${etag}&quot;</ETag>`;
  if (checksum !== undefined) {
    xml += `<ChecksumAlgorithm>${checksum.algorithm}</ChecksumAlgorithm><ChecksumType>${checksum.type}</ChecksumType>`;
  }
  return `${xml}<Size>${sizeBytes}</Size>`;
}

export function commonPrefixesXml(
  context: Pick<OperationContext, 'turn'>,
  prefixes: readonly string[],
  writeName: WriteName,
): Promise<string> {
  return writeInTurns(
    context,
    prefixes,
    (prefix) => `<CommonPrefixes><Prefix>${writeName(prefix)}</Prefix></CommonPrefixes>`,
  );
}

/** `<ID>` and `<DisplayName>` of an account. */
export async function identityXml(context: OperationContext, accountId: AccountId): Promise<string> {
  const { id, displayName } = await context.ownerOf(accountId);
  return `<ID>${id}</ID><DisplayName>${escapeXml(displayName)}</DisplayName>`;
}

/** The `<Owner>` elements of a page, each account looked up once. */
export async function ownersXml(
  context: OperationContext,
  objects: readonly Pick<ListedObject, 'summary'>[],
): Promise<ReadonlyMap<AccountId, string>> {
  const owners = new Map<AccountId, string>();
  for (const { summary } of objects) {
    if (owners.has(summary.owner)) continue;
    owners.set(summary.owner, `<Owner>${await identityXml(context, summary.owner)}</Owner>`);
  }
  return owners;
}

/** An opaque continuation token: where the next page begins, exclusive. */
export function makeToken(after: string): string {
  return TOKEN_VERSION + Buffer.from(after, 'utf8').toString('base64url');
}

/** What makeToken was given. InvalidArgument for what no listing handed out. */
export function readToken(token: string): string {
  if (TOKEN.test(token)) {
    const bytes = Buffer.from(token.slice(TOKEN_VERSION.length), 'base64url');
    try {
      const after = fromUtf8(bytes);
      // A digit too few for a byte would be a page from the beginning.
      if (makeToken(after) === token) return after;
    } catch {
      // Not UTF-8: refused below.
    }
  }
  const message = 'The continuation token provided is incorrect';
  throw invalidArgument({ name: 'continuation-token', value: token, message });
}
