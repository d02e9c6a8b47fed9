// Price lists and invoices through a server, by the command line. What a month comes to: src/billing; closing: src/accounts.
import { expect, test } from 'vitest';
import {
  listInvoices,
  listPrices,
  previewInvoices,
  setPrices,
  showInvoice,
} from '../../src/cli/invoice-command.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
const asked = () => ({ dataDir: api.server.dataDir });
const PRICES = { from: '2026-07-01', currency: 'USD', storage: '6.99', egress: '0.04' };

test('a price list is set, shown, replaced by day, and its fields are judged', async () => {
  await setPrices(context, { ...asked(), ...PRICES });
  expect(taken()).toMatch(/2026-07-01\s+USD\s+6.99\s+6.99\s+1\s+6.99\s+0\s+0\s+0.04/);
  await setPrices(context, { ...asked(), ...PRICES, storage: '7.99', minimumTb: '0.5' });
  taken();
  await listPrices(context, { ...asked(), json: true });
  expect(JSON.parse(taken()).priceLists).toEqual([
    {
      from: '2026-07-01',
      currency: 'USD',
      prices: {
        activeStorage: '7.99',
        deletedStorage: '7.99',
        minimumTB: '0.5',
        minimumStorage: '7.99',
        apiCalls: '0',
        ingress: '0',
        egress: '0.04',
      },
      changedAt: expect.stringMatching(/Z$/),
    },
  ]);
  for (const wrong of [{ egress: '-1' }, { currency: 'XYZ' }, { from: '2026-02-30' }, { storage: 'much' }]) {
    await expect(setPrices(context, { ...asked(), ...PRICES, ...wrong })).rejects.toThrow('ValidationError');
  }
  await listPrices(context, asked());
  expect(taken()).toContain('2026-07-01');
});

test('without invoices lists are empty, a CSV file has its head alone, and nothing can be printed', async () => {
  await listInvoices(context, asked());
  expect(taken()).toBe('no invoices');
  await listInvoices(context, {
    ...asked(),
    month: '2026-07',
    control: '1',
    sub: '2',
    page: '9',
    json: true,
  });
  expect(JSON.parse(taken())).toEqual({ invoices: [], total: 0 });
  for (const wrong of [{ page: '0' }, { size: '1001' }, { month: '2026-13' }])
    await expect(listInvoices(context, { ...asked(), ...wrong })).rejects.toThrow('ValidationError');
  await expect(listInvoices(context, { ...asked(), page: 'two' })).rejects.toThrow(
    '--page must be a whole number',
  );
  await expect(showInvoice(context, '1', asked())).rejects.toThrow('no such invoice');
  await expect(showInvoice(context, '1', { ...asked(), pdf: true })).rejects.toThrow('NoSuchEntity');
  await listInvoices(context, { ...asked(), csv: true });
  expect(taken()).toMatch(/^id,subInvoiceId,controlInvoiceId,[^\n]*,totalStorage$/);
  for (const control of [undefined, true])
    await expect(
      showInvoice(context, '1', { ...asked(), csv: true, ...(control && { control }) }),
    ).rejects.toThrow('NoSuchEntity');
  // July has a price list by now.
  await expect(previewInvoices(context, '2026-07', { ...asked(), sub: '99' })).rejects.toThrow(
    'There is no such sub-account',
  );
});
