// Headers of features that are not there yet are refused, never ignored: a write condition that is passed over would
// overwrite data. One table; a later issue that brings a feature removes its rows. Headers that AWS ignores are not here.

import { CHECKSUM_ALGORITHMS, checksumHeader } from '../../../types/checksums.ts';
import { AppError, type ErrorCode } from '../../../types/errors.ts';
import { type OperationMatch, type OperationRow, READ_METHODS } from '../operation.ts';
import { CUSTOMER_KEY_HEADERS } from './customer-key.ts';

type Scope = 'all' | 'conditional-write' | 'put' | 'move' | 'write';

interface Screen {
  /** A header's name, or the beginning of several with a '*' at its end. */
  readonly header: string;
  readonly scope: Scope;
  /** Values that change nothing and so may pass. */
  readonly harmless?: readonly string[];
  /** Names under the prefix that other code understands. */
  readonly except?: readonly string[];
  /** Default NotImplemented. */
  readonly code?: ErrorCode;
}

/** All that AWS names; only STANDARD is kept, and all are shown as it (extensions 5). */
const STORAGE_CLASSES = [
  'STANDARD',
  'REDUCED_REDUNDANCY',
  'STANDARD_IA',
  'ONEZONE_IA',
  'INTELLIGENT_TIERING',
  'GLACIER',
  'GLACIER_IR',
  'DEEP_ARCHIVE',
  'OUTPOSTS',
  'SNOW',
  'EXPRESS_ONEZONE',
  'FSX_OPENZFS',
  'FSX_ONTAP',
];

const SCREENS: readonly Screen[] = [
  // Conditions where the operation does not decide them; on GET and HEAD the same names are read conditions.
  { header: 'if-match', scope: 'conditional-write' },
  { header: 'if-none-match', scope: 'conditional-write' },
  { header: 'if-modified-since', scope: 'conditional-write' },
  { header: 'if-unmodified-since', scope: 'conditional-write' },
  { header: 'x-amz-if-match-*', scope: 'conditional-write' },
  { header: 'x-amz-copy-source-if-*', scope: 'put' },
  { header: 'x-amz-write-offset-bytes', scope: 'put' },
  // AWS RenameObject has conditions and a token of its own.
  { header: 'x-amz-rename-source*', scope: 'all' },
  { header: 'x-amz-client-token', scope: 'move' },
  // Of the extensions' headers an operation takes those that it names.
  { header: 'x-svc-*', scope: 'write' },
  // Key management. Of customers' keys AWS takes no notice where there is nothing for them to open.
  { header: 'x-amz-server-side-encryption', scope: 'all', harmless: ['AES256'] },
  { header: 'x-amz-server-side-encryption-*', scope: 'all', except: CUSTOMER_KEY_HEADERS },
  { header: 'x-amz-copy-source-server-side-encryption-*', scope: 'all', except: CUSTOMER_KEY_HEADERS },
  // Locks.
  { header: 'x-amz-object-lock-*', scope: 'all' },
  { header: 'x-amz-bucket-object-lock-enabled', scope: 'all', harmless: ['false', 'False'] },
  { header: 'x-amz-bypass-governance-retention', scope: 'all', harmless: ['false', 'False'] },
  // Access control lists where the operation does not take one. Of ownership there is one kind: the writer's.
  { header: 'x-amz-acl', scope: 'all', harmless: ['private'] },
  { header: 'x-amz-grant-*', scope: 'all' },
  { header: 'x-amz-object-ownership', scope: 'all', harmless: ['ObjectWriter'] },
  { header: 'x-amz-storage-class', scope: 'all', harmless: STORAGE_CLASSES, code: 'InvalidStorageClass' },
  {
    header: 'x-amz-checksum-*',
    scope: 'all',
    except: ['mode', 'type', 'algorithm']
      .map((word) => `x-amz-checksum-${word}`)
      .concat(CHECKSUM_ALGORITHMS.map(checksumHeader)),
  },
];

const EXACT = new Map(
  SCREENS.filter((screen) => !screen.header.endsWith('*')).map((screen) => [screen.header, screen]),
);
const PREFIXES = SCREENS.filter((screen) => screen.header.endsWith('*')).map((screen) => ({
  screen,
  prefix: screen.header.slice(0, -1),
}));

/** Throws NotImplemented, or the screen's own code, for a header that the operation cannot honour. */
export function screenHeaders(
  { match, conditions, options }: Pick<OperationRow<never>, 'match' | 'conditions' | 'options'>,
  headers: Readonly<Record<string, string>>,
): void {
  for (const name in headers) {
    // Most names are of neither kind.
    if (!name.startsWith('x-amz-') && !name.startsWith('if-') && !name.startsWith('x-svc-')) continue;
    const screen = EXACT.get(name) ?? PREFIXES.find(({ prefix }) => name.startsWith(prefix))?.screen;
    if (screen === undefined || !isInScope(screen.scope, match) || screen.except?.includes(name)) continue;
    if (conditions?.includes(name) || options?.includes(name)) continue;
    if (screen.harmless?.includes(headers[name] ?? '')) continue;
    throw new AppError(screen.code ?? 'NotImplemented', { fields: { Header: name } });
  }
}

function isInScope(scope: Scope, match: OperationMatch): boolean {
  const isWrite = !READ_METHODS.has(match.method);
  switch (scope) {
    case 'all':
      return true;
    case 'write':
      return isWrite;
    case 'move':
      return match.method === 'MOVE';
    case 'put':
      return match.method === 'PUT' || match.method === 'MOVE';
    case 'conditional-write':
      return isWrite && (match.on === 'object' || isExtensionOfBuckets(match));
  }
}

/** AWS takes no notice of conditions on buckets; where all of one may go, or go elsewhere, none is passed over. */
function isExtensionOfBuckets({ method, query }: OperationMatch): boolean {
  return method === 'MOVE' || query?.includes('force_delete=true') === true;
}
