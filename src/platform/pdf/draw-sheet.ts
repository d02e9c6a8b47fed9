// Draws a sheet as PDF, by pdfkit: A4, the fonts embedded. Nothing in it depends on the time or the machine. It is not compressed,
// so that its bytes do not depend on the version of zlib either.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Sheet, SheetColumn } from '../../ports/pages.ts';

/** Points: 1/72 inch. */
const MARGIN = 56;
const ROW_HEIGHT = 20;
const LINE_HEIGHT = 14;
const CELL_PADDING = 4;
const FOOTER_HEIGHT = 40;
const INK = '#1c2430';
const FAINT = '#6b7684';
const RULE = '#c9d0d8';
const SHADE = '#f1f4f7';
const ACCENT = '#1f5fa8';

/** By their own names: under any other one pdfkit reads the document's font anew each time that it is chosen. */
const FONTS = { regular: 'DejaVuSans', bold: 'DejaVuSans-Bold' } as const;

interface Fonts {
  regular: Buffer;
  bold: Buffer;
}

interface Loaded extends Fonts {
  PDFDocument: typeof import('pdfkit');
}

let loading: Promise<Loaded> | undefined;

/** Not before the first sheet: pdfkit takes 150 ms of CPU to load. */
async function load(): Promise<Loaded> {
  const require = createRequire(import.meta.url);
  const fontOf = (name: string) => readFile(require.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`));
  const [{ default: PDFDocument }, regular, bold] = await Promise.all([
    import('pdfkit'),
    fontOf(FONTS.regular),
    fontOf(FONTS.bold),
  ]);
  return { PDFDocument, regular, bold };
}

/** As PDF, and the same sheet as the same bytes. Keeps its thread for up to 0.2 s at a time: run it on one of its own (pdf-pages.ts). */
export async function drawSheet(sheet: Sheet): Promise<Uint8Array<ArrayBuffer>> {
  loading ??= load();
  const { PDFDocument, ...fonts } = await loading;
  const madeAt = new Date(sheet.madeAtMs);
  const doc = new PDFDocument({
    size: 'A4',
    margins: { top: MARGIN, left: MARGIN, right: MARGIN, bottom: 0 },
    compress: false,
    autoFirstPage: false,
    bufferPages: true,
    // Of the document itself, so that none of the fonts that pdfkit has on disk is read.
    font: fonts.regular as unknown as string,
    lang: 'en',
    displayTitle: true,
    info: {
      Title: `${sheet.title} ${sheet.facts[0]?.[1] ?? ''}`,
      Author: sheet.sender[0] ?? '',
      Creator: 'Holdfast',
      Producer: 'Holdfast',
      CreationDate: madeAt,
      ModDate: madeAt,
    },
  });
  doc.registerFont(FONTS.regular, fonts.regular);
  doc.registerFont(FONTS.bold, fonts.bold);
  const chunks: Buffer[] = [];
  doc.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise<void>((resolve, reject) => {
    doc.once('end', resolve);
    doc.once('error', reject);
  });
  doc.addPage();
  drawHead(doc, sheet);
  drawTable(doc, sheet);
  drawEnd(doc, sheet);
  numberPages(doc, sheet);
  doc.end();
  await ended;
  return Buffer.concat(chunks);
}

type Doc = PDFKit.PDFDocument;

interface Place {
  x: number;
  y: number;
  width: number;
}

interface Look {
  font?: 'regular' | 'bold';
  size?: number;
  color?: string;
  align?: 'left' | 'right';
}

/** One line, cut with an ellipsis where it is longer than its place. */
function write(doc: Doc, text: string, { x, y, width }: Place, look: Look = {}): void {
  const { font = 'regular', size = 9, color = INK, align = 'left' } = look;
  doc.font(FONTS[font]).fontSize(size).fillColor(color);
  const line = fitted(doc, printable(text), width);
  const left = align === 'right' ? x + width - doc.widthOfString(line) : x;
  doc.text(line, left, y, { lineBreak: false });
}

/** Names come from clients: a control character has no glyph, and a line end would begin a new line. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}

/** As much of the text as the width has room for. */
function fitted(doc: Doc, text: string, width: number): string {
  if (doc.widthOfString(text) <= width) return text;
  const letters = [...text];
  let [fits, tooMany] = [0, letters.length];
  while (tooMany - fits > 1) {
    const middle = (fits + tooMany) >> 1;
    if (doc.widthOfString(`${letters.slice(0, middle).join('')}…`) <= width) fits = middle;
    else tooMany = middle;
  }
  return `${letters.slice(0, fits).join('').trimEnd()}…`;
}

function contentWidth(doc: Doc): number {
  return doc.page.width - 2 * MARGIN;
}

function rule(doc: Doc, y: number, color = RULE): void {
  doc
    .moveTo(MARGIN, y)
    .lineTo(MARGIN + contentWidth(doc), y)
    .lineWidth(0.7)
    .strokeColor(color)
    .stroke();
}

function drawHead(doc: Doc, sheet: Sheet): void {
  const width = contentWidth(doc);
  const half = width / 2;
  const [name = '', ...rest] = sheet.sender;
  write(doc, name, { x: MARGIN, y: MARGIN, width: half + 60 }, { font: 'bold', size: 14 });
  rest.forEach((line, at) => {
    const place = { x: MARGIN, y: MARGIN + 20 + at * LINE_HEIGHT, width: half + 60 };
    write(doc, line, place, { color: FAINT });
  });
  const titlePlace = { x: MARGIN + half + 60, y: MARGIN, width: half - 60 };
  write(doc, sheet.title, titlePlace, { font: 'bold', size: 20, color: ACCENT, align: 'right' });
  rule(doc, MARGIN + 44, ACCENT);
  const top = MARGIN + 62;
  write(doc, sheet.receiver.caption, { x: MARGIN, y: top, width: half }, { size: 8, color: FAINT });
  doc.y = top + LINE_HEIGHT;
  sheet.receiver.lines.forEach((line, at) => {
    // Whole, over as many lines as it takes: who is charged is not cut.
    doc
      .font(at === 0 ? FONTS.bold : FONTS.regular)
      .fontSize(at === 0 ? 10 : 9)
      .fillColor(INK);
    doc.text(printable(line), MARGIN, doc.y, { width: half - 12 });
  });
  const receiverEnd = doc.y;
  sheet.facts.forEach(([caption, value], at) => {
    const y = top + LINE_HEIGHT * at;
    write(doc, caption, { x: MARGIN + half, y, width: half / 2 - 8 }, { color: FAINT });
    write(doc, value, { x: MARGIN + half * 1.5 - 16, y, width: half / 2 + 16 }, { align: 'right' });
  });
  doc.y = Math.max(top + sheet.facts.length * LINE_HEIGHT, receiverEnd) + 22;
}

/** True where it has begun another page, because the rest of this one is lower. */
function makeRoom(doc: Doc, height: number): boolean {
  if (doc.y + height <= doc.page.height - MARGIN - FOOTER_HEIGHT) return false;
  doc.addPage();
  doc.y = MARGIN;
  return true;
}

function drawTable(doc: Doc, sheet: Sheet): void {
  const width = contentWidth(doc);
  const line = (cells: readonly string[], look: Look = {}) => {
    let x = MARGIN;
    const y = doc.y;
    sheet.columns.forEach((column, at) => {
      const cellWidth = width * column.share;
      const place = { x: x + CELL_PADDING, y: y + 5, width: cellWidth - 2 * CELL_PADDING };
      write(doc, cells[at] ?? '', place, { ...look, align: alignOf(column) });
      x += cellWidth;
    });
    doc.y = y + ROW_HEIGHT;
  };
  const head = () => {
    doc.rect(MARGIN, doc.y, width, ROW_HEIGHT).fill(SHADE);
    line(
      sheet.columns.map(({ caption }) => caption),
      { font: 'bold', size: 8.5 },
    );
  };
  head();
  for (const row of sheet.rows) {
    if (makeRoom(doc, ROW_HEIGHT)) head();
    if ('caption' in row) line([row.caption], { font: 'bold', size: 8, color: FAINT });
    else line(row.cells);
    rule(doc, doc.y);
  }
}

function alignOf(column: SheetColumn): 'left' | 'right' {
  return column.isNumeric ? 'right' : 'left';
}

function drawEnd(doc: Doc, sheet: Sheet): void {
  const width = contentWidth(doc);
  makeRoom(doc, 40 + sheet.notes.length * 3 * LINE_HEIGHT);
  const y = doc.y + 10;
  doc.rect(MARGIN + width / 2, y, width / 2, 28).fill(SHADE);
  const place = { x: MARGIN + width / 2 + 10, y: y + 8, width: width / 4 - 14 };
  write(doc, sheet.total.caption, place, { font: 'bold', size: 10 });
  const amountPlace = { x: MARGIN + (width * 3) / 4 - 20, y: y + 7, width: width / 4 + 20 - CELL_PADDING };
  write(doc, sheet.total.amount, amountPlace, { font: 'bold', size: 11.5, align: 'right' });
  doc.y = y + 52;
  doc.font(FONTS.regular).fontSize(8).fillColor(FAINT);
  for (const note of sheet.notes) {
    doc.text(note, MARGIN, doc.y, { width, lineGap: 2 });
    doc.y += 4;
  }
}

function numberPages(doc: Doc, sheet: Sheet): void {
  const { count } = doc.bufferedPageRange();
  for (let page = 0; page < count; page++) {
    doc.switchToPage(page);
    const y = doc.page.height - FOOTER_HEIGHT;
    const [caption = '', value = ''] = sheet.facts[0] ?? [];
    const width = contentWidth(doc);
    write(doc, `${caption} ${value}`, { x: MARGIN, y, width: width / 2 }, { size: 7.5, color: FAINT });
    const place = { x: MARGIN + width / 2, y, width: width / 2 };
    write(doc, `Page ${page + 1} of ${count}`, place, { size: 7.5, color: FAINT, align: 'right' });
  }
}
