// Shared by compositions and appends: which key is allowed, and the errors of a refused command.

import type { OutcomeOf } from '../ports/metadata/port.ts';
import type { ComposedVersion } from '../ports/metadata/versions.ts';
import { AppError } from '../types/errors.ts';
import { OutcomeStoreFull } from '../types/outcome-store-full.ts';
import type { VersionRecord } from '../types/version.ts';
import type { Written } from './object-store.ts';
import { refusedCommit } from './write-object.ts';

/** EncryptionNotAllowed where a customer's key seals the object (service 4.2, compose rule 5). */
export function requireMasterKey({ kek }: Pick<VersionRecord, 'kek'>): void {
  if (kek?.by === 'customer') throw new AppError('EncryptionNotAllowed');
}

export function composedAnswer(version: ComposedVersion): Written {
  const { versionId, versioning, modifiedAtMs, etag, sizeBytes, checksum } = version;
  return { versionId, versioning, modifiedAtMs, etag, sizeBytes, ...(checksum && { checksum }) };
}

type Refusal = Exclude<OutcomeOf<'compose-version'>, { kind: 'committed' } | { kind: 'repeated' }>;

/** The error for a refused composition or append. */
export function refusedComposition(refusal: Refusal, key: string): AppError {
  if (refusal.kind === 'token-reused') return new AppError('IdempotencyParameterMismatch');
  if (refusal.kind === 'too-much-kept') return new OutcomeStoreFull();
  return refusedCommit(refusal, key);
}
