// What the bodies of the links part are made of: pieces, each written once by a put or an append, which copies and
// compositions share and folding writes anew. A blob tells its pieces, a version those of its blobs, in order.
import { utf8 } from '../../src/base/bytes/bytes.ts';
import type { CommandOf } from '../../src/ports/metadata/port.ts';
import type { BlobId } from '../../src/types/names.ts';
import type { PieceRecord } from '../../src/types/records/piece-record.ts';
import type { Manifest, ManifestBody } from '../../src/types/version.ts';
import { joinPieces, pieceOf, piecesOf } from './bucket-operations.ts';
import { SimulationFailure } from './scheduler.ts';

/** A piece of a blob that appends let grow, once it is or was committed. */
export type FindPiece = (blobId: BlobId, index: number) => PieceRecord | undefined;

export class LinkBodies {
  readonly #findPiece: FindPiece;
  readonly #bytes = new Map<string, Buffer>();
  readonly #valueOf = new Map<BlobId, string>();

  constructor(findPiece: FindPiece) {
    this.#findPiece = findPiece;
  }

  /** A new piece of that size, in bytes, by a name that no other one has. */
  make(name: string, sizeBytes: number): { value: string; bytes: Buffer } {
    const value = pieceOf(name, sizeBytes);
    const bytes = Buffer.alloc(sizeBytes, utf8(`${value}|`));
    this.#bytes.set(value, bytes);
    return { value, bytes };
  }

  /** A put or an append is about to be sent. */
  created(births: readonly { use: { blobId: BlobId } }[], value: string): void {
    for (const { use } of births) this.#valueOf.set(use.blobId, value);
  }

  /** Pieces are about to become one blob. */
  compacted({ run, birth }: CommandOf<'fold-version'>): void {
    this.#valueOf.set(birth.use.blobId, joinPieces(run.map((segment) => this.#ofSegment(segment))));
  }

  /** What versions or parts with this data say. */
  valueOf({ uses, segments }: ManifestBody): string {
    return joinPieces(
      segments.map(({ use, sizeBytes }) => this.#ofSegment({ blobId: uses[use]?.blobId, sizeBytes })),
    );
  }

  valueOfVersion(manifest: Manifest): string {
    if (manifest.kind === 'direct') return this.valueOf(manifest);
    throw new SimulationFailure('a version of few pieces has pages');
  }

  bytesOf(value: string): Buffer {
    return Buffer.concat(piecesOf(value).map((piece) => this.#bytes.get(piece) ?? utf8(`no ${piece}`)));
  }

  /** What came behind the pieces of a version or part is not its own. */
  #ofSegment({ blobId, sizeBytes }: { blobId: BlobId | undefined; sizeBytes: number }): string {
    if (blobId === undefined || this.#findPiece(blobId, 0) === undefined) return this.#ofBlob(blobId);
    const values: string[] = [];
    for (let leftBytes = sizeBytes; leftBytes > 0; ) {
      const piece = this.#findPiece(blobId, values.length);
      if (piece === undefined || piece.sizeBytes > leftBytes)
        throw new SimulationFailure(`I12: ${sizeBytes} bytes are not pieces of ${blobId}`);
      values.push(this.#ofBlob(piece.pieceId));
      leftBytes -= piece.sizeBytes;
    }
    return joinPieces(values);
  }

  #ofBlob(blobId: BlobId | undefined): string {
    const value = blobId && this.#valueOf.get(blobId);
    if (value === undefined) throw new SimulationFailure(`I12: nobody has written ${blobId}`);
    return value;
  }
}
