// Sheets as PDF, drawn on a thread of their own: to load pdfkit takes 0.15 s, and to embed the letters of a long sheet 0.1 s, in
// which nobody else would be served. The thread starts with the first sheet, and ends when none has come for a while.
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { PagePort } from '../../ports/pages.ts';
import { AppError } from '../../types/errors.ts';

/** Drawn or waiting; a sheet of 2,000 rows takes a second. */
const SHEETS_MAX = 8;
const IDLE_MS = 60_000;
/** V8's memory for new objects of the thread, MiB (as in piscina-codec-pool.ts). */
const YOUNG_MIB = 8;

export interface PdfPages extends PagePort {
  /** Ends the thread; what is being drawn rejects. */
  close(): Promise<void>;
}

/** `pdf` throws SlowDown when too many sheets wait. */
export function createPdfPages(): PdfPages {
  let piscina: Piscina | undefined;
  let sheetCount = 0;
  const open = () =>
    new Piscina({
      filename: fileURLToPath(new URL('./draw-sheet.ts', import.meta.url)),
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: IDLE_MS,
      recordTiming: false,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
    });
  return {
    async pdf(sheet) {
      if (sheetCount >= SHEETS_MAX) throw new AppError('SlowDown');
      sheetCount++;
      try {
        piscina ??= open();
        return await piscina.run(sheet, { name: 'drawSheet' });
      } finally {
        sheetCount--;
      }
    },
    close: async () => piscina?.destroy(),
  };
}
