import { expect, test } from 'vitest';
import { Corruption } from '../../base/corruption.ts';
import { toReadError } from './rocksdb-corruption.ts';

/** As the binding words it, of a read that the file system has answered so. */
function ioError(words: string): Error {
  const message = `IO error: While pread offset 5027 len 5027: /disks/1/000008.sst: ${words}`;
  return Object.assign(new Error(message), { code: 'LEVEL_IO_ERROR' });
}

test.each([
  ['EIO', 'Input/output error'],
  ['EIO of another C library', 'I/O error'],
  ['EUCLEAN', 'Structure needs cleaning'],
  ['EBADMSG', 'Bad message'],
  ['ENODATA', 'No data available'],
  ['EILSEQ', 'Invalid or incomplete multibyte or wide character'],
])('%s: the bytes are lost', (_name, words) => {
  const error = ioError(words);
  expect(toReadError(error)).toBeInstanceOf(Corruption);
  expect((toReadError(error) as Error).cause).toBe(error);
});

test.each([
  ['EMFILE', 'Too many open files'],
  ['ENOMEM', 'Cannot allocate memory'],
  ['ETIMEDOUT', 'Connection timed out'],
  ['EREMOTEIO', 'Remote I/O error'],
  ['ENOLINK', 'Link has been severed'],
])('%s: nothing is known of the bytes', (_name, words) => {
  const error = ioError(words);
  expect(toReadError(error)).toBe(error);
});

test('text of errors other than read errors is not interpreted', () => {
  const error = new Error('the socket: Input/output error');
  expect(toReadError(error)).toBe(error);
});
