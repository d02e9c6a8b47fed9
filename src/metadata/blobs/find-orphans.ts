// Links that nothing holds, at one moment. The caller has walked those that hold links page by page while others wrote;
// a version that was renamed meanwhile, from what was still to be walked to what had been, has not been met (R26).
// Only links that were not met are looked for here, in all that may hold them, under one view.
import { allRows } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader, StateView, TableRef } from '../../ports/state-machine.ts';
import { manifestPageCodec, partCodec } from '../../types/records/rows.ts';
import { decodeVersion } from '../../types/records/version-record.ts';
import { linksOf } from '../../types/version.ts';
import { linkRow, TABLES } from '../schema/keyspace.ts';
import { type LinkName, linkText } from './links.ts';

type LinksIn = (value: Uint8Array) => readonly LinkName[];

/** What may hold links, and how those of a row are read. */
const OWNERS: readonly { table: TableRef; linksIn: LinksIn }[] = [
  { table: TABLES.parts, linksIn: (value) => partCodec.decode(value).uses },
  { table: TABLES.manifestPages, linksIn: (value) => manifestPageCodec.decode(value).uses },
  { table: TABLES.objects, linksIn: (value) => linksOf(decodeVersion(value).manifest) },
];

export const findOrphans: QuerySpec<QueryOf<'find-strays'>, ResultOf<'find-strays'>> = {
  async run({ links }, state: StateReader) {
    const view = state.view();
    try {
      const rows = await view.rows(links.map(({ blobId, linkId }) => linkRow(blobId, linkId)));
      const left = new Map(
        links.filter((_, at) => rows[at] !== undefined).map((link) => [linkText(link), link]),
      );
      for (const owner of OWNERS) await strikeHeld(view, owner, left);
      return { links: [...left.values()] };
    } finally {
      view.close();
    }
  },
};

async function strikeHeld(
  view: StateView,
  { table, linksIn }: (typeof OWNERS)[number],
  left: Map<string, LinkName>,
): Promise<void> {
  for await (const { value } of allRows(view, table)) {
    if (left.size === 0) return;
    for (const link of legibleLinks(value, linksIn)) left.delete(linkText(link));
  }
}

/** A row that is broken was found as such, and nothing can be said of what it holds. */
function legibleLinks(value: Uint8Array, linksIn: LinksIn): readonly LinkName[] {
  try {
    return linksIn(value);
  } catch {
    return [];
  }
}
