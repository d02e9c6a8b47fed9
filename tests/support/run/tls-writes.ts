// How much is written at once on sockets of TLS, of this process.
import { Socket } from 'node:net';
import { vi } from 'vitest';

/** The sizes of all writes from here on. `isOfServer`: of these ends alone. */
export function watchTlsWrites({ isOfServer }: { isOfServer?: boolean } = {}): {
  sizes: number[];
  stop(): void;
} {
  const sizes: number[] = [];
  const spies = (['_write', '_writev'] as const).map((name) => {
    const write = Socket.prototype[name] as (...given: unknown[]) => void;
    // Looked at when it is written: its memory is used for others afterwards.
    return vi.spyOn(Socket.prototype, name as '_write').mockImplementation(function (this: Socket, ...given) {
      const { _tlsOptions } = this as { _tlsOptions?: { isServer?: boolean } };
      const isWanted = isOfServer === undefined || (_tlsOptions?.isServer ?? false) === isOfServer;
      if (_tlsOptions !== undefined && isWanted) sizes.push(sizeOf(given[0]));
      write.apply(this, given);
    });
  });
  return {
    sizes,
    stop() {
      for (const spy of spies) spy.mockRestore();
    },
  };
}

function sizeOf(data: unknown): number {
  if (Array.isArray(data)) return data.reduce((sum, { chunk }) => sum + sizeOf(chunk), 0);
  return (data as Buffer | string).length;
}
