import { expect, onTestFinished, test, vi } from 'vitest';
import type { Sheet } from '../../ports/pages.ts';
import { drawSheet } from './draw-sheet.ts';
import { createPdfPages } from './pdf-pages.ts';

const SHEET: Sheet = {
  sender: ['Northwind', 'invoices@northwind.example'],
  title: 'Invoice',
  receiver: { caption: 'Bill to', lines: ['Müller & Söhne, Ελλάδα, Москва, 北京', 'a@example.com'] },
  facts: [
    ['Invoice number', '12'],
    ['Period', '2026-04-01 to 2026-04-30'],
  ],
  columns: [
    { caption: 'Item', share: 0.6, isNumeric: false },
    { caption: 'Amount', share: 0.4, isNumeric: true },
  ],
  rows: [{ caption: '2026-04-01 to 2026-04-10' }, { cells: ['Active storage', '5.99'] }],
  total: { caption: 'Total USD', amount: '5.99' },
  notes: ['30 of 30 days are charged.'],
  madeAtMs: Date.UTC(2026, 4, 1),
};

async function textOf(sheet: Sheet): Promise<string> {
  return Buffer.from(await drawSheet(sheet)).toString('latin1');
}

test('the same sheet gives the same bytes, whenever and however often it is drawn', async () => {
  const first = await textOf(SHEET);
  expect((await textOf(structuredClone(SHEET))) === first).toBe(true);
  expect((await textOf({ ...SHEET, total: { caption: 'Total USD', amount: '6.00' } })) === first).toBe(false);
});

test('it is a PDF of one page, dated by the invoice, with both fonts inside', async () => {
  const text = await textOf(SHEET);
  expect(text.startsWith('%PDF-1.')).toBe(true);
  expect(text.trimEnd().endsWith('%%EOF')).toBe(true);
  expect([...new Set(text.match(/\(D:\d+Z\)/g))]).toEqual(['(D:20260501000000Z)']);
  expect(text.includes('/Count 1')).toBe(true);
  expect(text.match(/\/FontFile2 /g)).toHaveLength(2);
});

test('a long table goes over several pages, each with the head of the table', async () => {
  const rows = Array.from({ length: 200 }, (_, at) => ({ cells: [`row ${at}`, '1.00'] }));
  const text = await textOf({ ...SHEET, rows });
  expect(/\/Count \d+/.exec(text)?.[0]).toBe('/Count 7');
});

test('each font is read once, however many lines are drawn with it', async () => {
  // What a font says of itself is decoded as text when it is read.
  const decode = vi.spyOn(TextDecoder.prototype, 'decode');
  onTestFinished(() => decode.mockRestore());
  const countFor = async (rowCount: number) => {
    decode.mockClear();
    await textOf({ ...SHEET, rows: Array.from({ length: rowCount }, () => ({ cells: ['row', '1.00'] })) });
    return decode.mock.calls.length;
  };
  const count = await countFor(1);
  expect(count).toBeGreaterThan(0);
  expect(await countFor(100)).toBe(count);
});

test('names that clients have chosen are drawn, whatever is in them', async () => {
  const lines = ['a\u0000b\r\nc', 'x'.repeat(5000), '\ud800', 'مرحبا', ''];
  const odd = {
    ...SHEET,
    receiver: { caption: 'Bill to', lines },
    rows: lines.map((line) => ({ cells: [line, line] })),
  };
  expect((await textOf(odd)).trimEnd().endsWith('%%EOF')).toBe(true);
});

test('sheets are drawn by another thread, of which only a few wait', async () => {
  const decode = vi.spyOn(TextDecoder.prototype, 'decode');
  onTestFinished(() => decode.mockRestore());
  const pages = createPdfPages();
  onTestFinished(() => pages.close());
  const drawn = await Promise.allSettled(Array.from({ length: 10 }, () => pages.pdf(SHEET)));
  expect(decode).not.toHaveBeenCalled();
  const refused = drawn.filter((each) => each.status === 'rejected').map(({ reason }) => reason.code);
  expect(refused).toEqual(['SlowDown', 'SlowDown']);
  expect(Buffer.from(await pages.pdf(SHEET)).equals(await drawSheet(SHEET))).toBe(true);
});
