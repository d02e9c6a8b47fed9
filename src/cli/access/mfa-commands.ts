// holdfast mfa create, enable, list, deactivate, delete: virtual devices that make codes of one use.
import { writeFile } from 'node:fs/promises';
import { Refusal } from '../../base/refusal.ts';
import { type CliContext, type ConnectOptions, connectIdentity } from '../connect.ts';
import { field, jsonOf, printDone, printFacts, printList, requireElement } from './answers.ts';

export interface CreateDeviceOptions extends ConnectOptions {
  path?: string;
  /** Where the picture of the seed goes. */
  qrFile?: string;
}

export async function createDevice(
  context: CliContext,
  name: string,
  options: CreateDeviceOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const answer = await query.iam('CreateVirtualMFADevice', {
    VirtualMFADeviceName: name,
    Path: options.path,
  });
  const device = requireElement(answer, 'VirtualMFADevice');
  if (options.qrFile !== undefined) await writePicture(options.qrFile, field(device, 'QRCodePNG'));
  printFacts({ context, options }, jsonOf(device) as object, [
    ['serial number', field(device, 'SerialNumber')],
    // Both hold Base64: of the seed in Base32, and of a picture.
    ['seed', Buffer.from(field(device, 'Base32StringSeed'), 'base64').toString('latin1')],
  ]);
  if (options.json === true) return;
  context.print('\nThe seed is not shown again. Give it to an app for codes, then give two codes in a row:');
  context.print(`  holdfast mfa enable ${field(device, 'SerialNumber')} CODE NEXT-CODE --user NAME`);
}

/** A new file, for its owner alone: whoever has it makes the codes. */
async function writePicture(file: string, base64: string): Promise<void> {
  try {
    await writeFile(file, Buffer.from(base64, 'base64'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw new Refusal(
      `the device is made, but its picture cannot be written: ${(error as Error).message}\n` +
        'Delete the device by holdfast mfa delete, and make it again.',
    );
  }
}

export interface DeviceOptions extends ConnectOptions {
  user?: string;
}

export async function enableDevice(
  context: CliContext,
  device: { serialNumber: string; codes: readonly [string, string] },
  options: DeviceOptions & { user: string },
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const [AuthenticationCode1, AuthenticationCode2] = device.codes;
  await query.iam('EnableMFADevice', {
    UserName: options.user,
    SerialNumber: device.serialNumber,
    AuthenticationCode1,
    AuthenticationCode2,
  });
  printDone({ context, options }, `Device ${device.serialNumber} is of user ${options.user}.`);
}

/** Those of a user, or all that there are. */
export async function listDevices(context: CliContext, options: DeviceOptions): Promise<void> {
  const { query } = await connectIdentity(context, options);
  const { user } = options;
  const devices =
    user === undefined
      ? await query.list('ListVirtualMFADevices', 'VirtualMFADevices')
      : await query.list('ListMFADevices', 'MFADevices', { UserName: user });
  printList({ context, options }, devices, {
    'SERIAL NUMBER': 'SerialNumber',
    USER: (device) => {
      const owner = device.children.find(({ name }) => name === 'User');
      return user ?? (owner === undefined ? '' : field(owner, 'UserName') || field(owner, 'Arn'));
    },
    ENABLED: 'EnableDate',
  });
}

/** It stays, and may be enabled again. */
export async function deactivateDevice(
  context: CliContext,
  serialNumber: string,
  options: DeviceOptions & { user: string },
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  await query.iam('DeactivateMFADevice', { UserName: options.user, SerialNumber: serialNumber });
  printDone({ context, options }, `Device ${serialNumber} is not of user ${options.user} any more.`);
}

export async function deleteDevice(
  context: CliContext,
  serialNumber: string,
  options: ConnectOptions,
): Promise<void> {
  const { query } = await connectIdentity(context, options);
  await query.iam('DeleteVirtualMFADevice', { SerialNumber: serialNumber });
  printDone({ context, options }, `Device ${serialNumber} is deleted.`);
}
