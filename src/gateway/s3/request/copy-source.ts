// Where a copy takes its bytes from: the x-amz-copy-source header. Not here: whether the source exists and may be read.
import { bytesToText, percentDecode } from '../../../base/text/uri.ts';
import { type ObjectKey, parseObjectKey, type VersionId } from '../../../types/names.ts';
import { invalidArgument, parseVersionId } from './arguments.ts';

export interface CopySource {
  /** As the client wrote it: a name that no bucket can bear is a bucket that does not exist. */
  bucket: string;
  key: ObjectKey;
  versionId?: VersionId;
}

const NAME = 'x-amz-copy-source';
const VERSION_SEPARATOR = '?versionId=';

/**
 * Reads `[/]bucket/key[?versionId=id]`, percent-encoded. A plus is a plus: SDKs write a space as %20. The key may hold
 * a bare "?"; only the last `?versionId=` splits off a version, as AWS does.
 */
export function parseCopySource(header: string): CopySource {
  const separator = header.lastIndexOf(VERSION_SEPARATOR);
  const versionId =
    separator === -1 ? undefined : parseVersionId(header.slice(separator + VERSION_SEPARATOR.length));
  const path = decodePath(separator === -1 ? header : header.slice(0, separator));
  if (path === undefined) throw refuse(header, 'Invalid copy source encoding');
  const start = path.startsWith('/') ? 1 : 0;
  const slash = path.indexOf('/', start);
  const key = slash === -1 ? undefined : parseObjectKey(path.slice(slash + 1));
  if (key === undefined || slash === start) {
    throw refuse(header, 'Copy Source must mention the source bucket and key: sourcebucket/sourcekey');
  }
  if (key === 'too-long') throw refuse(header, 'Invalid copy source object key');
  const source: CopySource = { bucket: path.slice(start, slash), key };
  if (versionId !== undefined) source.versionId = versionId;
  return source;
}

/** As conditions of policies see it: in one spelling, whichever the header has. */
export function copySourceValues({ bucket, key, versionId }: CopySource): Readonly<Record<string, string>> {
  const version = versionId === undefined ? '' : `${VERSION_SEPARATOR}${versionId}`;
  return { 's3:x-amz-copy-source': `${bucket}/${key}${version}` };
}

function decodePath(encoded: string): string | undefined {
  const bytes = percentDecode(encoded);
  return bytes === undefined ? undefined : bytesToText(bytes);
}

function refuse(value: string, message: string): Error {
  return invalidArgument({ name: NAME, value, message });
}
