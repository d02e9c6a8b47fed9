// Sub-accounts and members by the command line: made, changed, imported from a spreadsheet, and deleted.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createPartner } from '../../src/cli/control-commands.ts';
import { type ImportedRow, importSubAccounts, readRows } from '../../src/cli/import-sub-accounts.ts';
import { createMember, deleteMember, listMembers, setMember } from '../../src/cli/member-commands.ts';
import {
  changeSubAccount,
  createSubAccount,
  deleteSubAccount,
  listSubAccounts,
  type SubAccount,
  setSubAccount,
  showSubAccount,
} from '../../src/cli/sub-account-commands.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const { context, taken } = createPrintedTool();
const answer = () => JSON.parse(taken());
const asJson = () => ({ dataDir: api.server.dataDir, json: true });
const asTable = () => ({ dataDir: api.server.dataDir });

let control: string;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-import-'));
  await createPartner(context, { ...asJson(), name: 'Reseller', email: 'r@example.com', level: 'control' });
  control = String(answer().id);
});
afterAll(() => rm(folder, { recursive: true }));

async function make(name: string, more: object = {}): Promise<SubAccount> {
  const given = { name, email: `${name}@cli.example`, password: 'Lon3ly&Loaf', control, ...more };
  await createSubAccount(context, { ...asJson(), ...given });
  return answer();
}

describe('holdfast account sub', () => {
  test('makes, lists, changes, suspends and restores', async () => {
    const made = await make('bakery', { trialDays: '60', trialQuota: '2' });
    expect(made).toMatchObject({ status: 'ON_TRIAL', trialQuotaTB: 2, secretKey: expect.any(String) });
    const as = {
      endpoint: api.server.endpoint,
      accessKey: made.accessKey,
      secretKey: made.secretKey,
    } as never;
    expectStatus(await api.send({ method: 'GET', path: '/' }, as), 200);
    await listSubAccounts(context, { ...asTable(), control, name: 'BAK' });
    const [head, row] = taken().split('\n');
    expect(head).toMatch(/^ID +ACCOUNT +STATE +CONTROL +NAME +E-MAIL$/);
    expect(row).toMatch(new RegExp(`^${made.id} +${made.accountNumber} +trial +${control} +bakery +bakery@`));
    const id = String(made.id);
    await setSubAccount(context, id, {
      ...asJson(),
      paid: true,
      storage: '3',
      quota: 'hard',
      name: 'Bakery',
    });
    expect(answer()).toMatchObject({
      name: 'Bakery',
      status: 'PAID_ACCOUNT',
      purchasedStorageTB: 3,
      storageQuotaType: 'Hard quota',
    });
    await changeSubAccount(context, { id, as: 'suspend' }, asJson());
    expect(answer().status).toBe('SUSPENDED');
    expectError(await api.send({ method: 'GET', path: '/' }, as), { status: 403, code: 'AccountProblem' });
    await changeSubAccount(context, { id, as: 'restore' }, asTable());
    expect(taken()).toMatch(/state +paid\n/);
    await changeSubAccount(context, { id, as: 'reset-keys' }, asJson());
    expect(answer().secretKey).not.toBe(made.secretKey);
    expectError(await api.send({ method: 'GET', path: '/' }, as), {
      status: 403,
      code: 'InvalidAccessKeyId',
    });
    await changeSubAccount(context, { id, as: 'reset-mfa' }, asJson());
    expect(answer().mfaEnabled).toBe(false);
  });

  test('deletes what owns buckets only when that is said, and shows what is left', async () => {
    const made = await make('florist', { paid: true });
    const { accessKey = '', secretKey = '' } = made;
    const bucket = await api.makeBucket({ endpoint: api.server.endpoint, accessKey, secretKey });
    const id = String(made.id);
    await expect(deleteSubAccount(context, id, asTable())).rejects.toThrow('--with-buckets');
    await deleteSubAccount(context, id, { ...asTable(), withBuckets: true });
    expect(taken()).toContain('are being removed');
    await showSubAccount(context, id, asTable());
    // The worker may have come to it meanwhile.
    expect(taken()).toMatch(
      /being removed: (1 bucket; 0 are gone|its users,)|state +deleted(?![\s\S]*being removed)/,
    );
    await vi.waitUntil(
      async () => {
        await showSubAccount(context, id, asJson());
        const { status, removal } = answer();
        return status === 'DEACTIVATED' && removal === undefined;
      },
      { timeout: 120_000, interval: 200 },
    );
    expectError(await api.send({ method: 'GET', path: `/${bucket}` }), { status: 404, code: 'NoSuchBucket' });
    await listSubAccounts(context, { ...asJson(), status: 'deleted' });
    expect(answer().map((one: SubAccount) => one.id)).toContain(made.id);
    await expect(deleteSubAccount(context, id, asTable())).rejects.toThrow('NoSuchEntity');
  });

  test('says what is wrong with what was given', async () => {
    await expect(make('x', { trialDays: 'a' })).rejects.toThrow('--trial-days takes a number');
    await expect(listSubAccounts(context, { ...asTable(), status: 'odd' })).rejects.toThrow('--status');
    await expect(setSubAccount(context, '1', { ...asTable(), quota: 'odd' })).rejects.toThrow('--quota');
    await expect(showSubAccount(context, '999999', asTable())).rejects.toThrow('NoSuchEntity');
    await expect(make('y', { password: 'short' })).rejects.toThrow('password');
  });
});

test('holdfast account member makes, lists, changes and deletes people', async () => {
  const { id: sub } = await make('studio');
  const who = { email: 'bo@studio.example', firstName: 'Bo', lastName: 'Baker', password: 'Cr0iss&nts' };
  await createMember(context, { ...asJson(), ...who, sub: String(sub), role: 'read only', mustReset: true });
  const { id } = answer();
  await listMembers(context, { ...asTable(), sub: String(sub) });
  expect(taken()).toMatch(new RegExp(`\n${id} +${sub} +Read Only +active +off +bo@studio.example +Bo Baker`));
  await setMember(context, String(id), { ...asJson(), role: 'full_access', status: 'deactivated' });
  expect(answer()).toMatchObject({ memberRole: 'Full Access', status: 'Deactivated' });
  await deleteMember(context, String(id), asTable());
  expect(taken()).toContain('is deleted');
  await listMembers(context, { ...asJson(), sub: String(sub) });
  expect(answer()).toEqual([]);
  const asked = { ...asTable(), ...who, sub: String(sub), role: 'nobody' };
  await expect(createMember(context, asked)).rejects.toThrow('memberRole');
});

describe('holdfast account sub import', () => {
  let failure: string | undefined;
  async function importText(text: string, more: object = {}): Promise<ImportedRow[]> {
    const file = join(folder, 'accounts.csv');
    await writeFile(file, text);
    const run = importSubAccounts(context, file, { ...asJson(), control, ...more });
    failure = await run.then(
      () => undefined,
      ({ message }: Error) => message,
    );
    const rows: ImportedRow[] = answer();
    expect(failure !== undefined).toBe(rows.some(({ outcome }) => outcome === 'wrong'));
    return rows;
  }

  const FILE = [
    '\uFEFFName,E-Mail,State,Storage TB,Quota,City',
    'Import One,one@import.example,paid,"1.5",hard,"Köln, Altstadt"',
    'Import Two,two@import.example,trial,,,',
    'Import Bad,not an address,paid,,,',
    'Import Again,ONE@import.example,paid,,,',
    '',
  ].join('\r\n');

  test('reports each row, and makes nothing twice', async () => {
    const outcomes = (rows: ImportedRow[]) => rows.map(({ line, outcome }) => [line, outcome]);
    expect(outcomes(await importText(FILE, { dryRun: true }))).toEqual([
      [2, 'would-be-made'],
      [3, 'would-be-made'],
      [4, 'wrong'],
      [5, 'there-already'],
    ]);
    expect(failure).toBe('1 of 4 rows are wrong; nothing was made');
    await listSubAccounts(context, { ...asJson(), name: 'Import' });
    expect(answer()).toEqual([]);
    const made = await importText(FILE);
    expect(outcomes(made)).toEqual([
      [2, 'made'],
      [3, 'made'],
      [4, 'wrong'],
      [5, 'there-already'],
    ]);
    expect(made[0]).toMatchObject({ accessKey: expect.any(String), secretKey: expect.any(String) });
    expect(made[2]?.reason).toMatch(/email/i);
    expect(failure).toBe('1 of 4 rows are wrong; the others are done');
    const [negative] = await importText('name,email,storage TB\nOwing,owing@import.example,-3\n');
    expect(negative?.reason).toBe('storageTB must be a number that is not negative');
    await showSubAccount(context, String(made[0]?.id), asJson());
    expect(answer()).toMatchObject({
      name: 'Import One',
      status: 'PAID_ACCOUNT',
      purchasedStorageTB: 1.5,
      storageQuotaType: 'Hard quota',
      city: 'Köln, Altstadt',
    });
    expect(outcomes(await importText(FILE))).toEqual([
      [2, 'there-already'],
      [3, 'there-already'],
      [4, 'wrong'],
      [5, 'there-already'],
    ]);
  });

  test('reads what spreadsheets write, and names a column that it does not know', () => {
    expect(readRows('name;email;storage_tb\nA;a@b.example;1,5\n')).toEqual([
      { line: 2, name: 'A', email: 'a@b.example', storageTB: '1,5' },
    ]);
    expect(() => readRows('name,email,colour\n')).toThrow('colour');
    expect(() => readRows('name\nA\n')).toThrow('no column email');
    expect(() => readRows('')).toThrow('no row');
    expect(() => readRows('name,email\n"A,b\n')).toThrow('not CSV');
  });
});
