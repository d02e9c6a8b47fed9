// Documents for print: what is on them is decided by who makes a sheet, how it is drawn by what implements the port.

/** One document with one table, over as many pages as it takes. */
export interface Sheet {
  /** At the top: who sends it, and what it is. */
  sender: readonly string[];
  title: string;
  /** To whom. */
  receiver: { caption: string; lines: readonly string[] };
  /** Beside the receiver: name and value. */
  facts: readonly (readonly [string, string])[];
  columns: readonly SheetColumn[];
  rows: readonly SheetRow[];
  /** Below the table. */
  total: { caption: string; amount: string };
  notes: readonly string[];
  /** In the document's metadata: the same sheet gives the same bytes at any time. */
  madeAtMs: number;
}

export interface SheetColumn {
  caption: string;
  /** Share of the width. */
  share: number;
  isNumeric: boolean;
}

/** A cell for each column. `caption`: a line above rows that belong together. */
export type SheetRow = { cells: readonly string[] } | { caption: string };

export interface PagePort {
  /** As PDF. The same sheet gives the same bytes. */
  pdf(sheet: Sheet): Promise<Uint8Array>;
}
