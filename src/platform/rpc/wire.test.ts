// proto/metadata.proto is the contract: what wire.ts writes is read by it, and the other way round.
import { fileURLToPath } from 'node:url';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import { expect, test } from 'vitest';
import { METADATA_SERVICE } from './wire.ts';

const PROTO_FILE = fileURLToPath(new URL('../../../proto/metadata.proto', import.meta.url));
const CONTRACT = loadSync(PROTO_FILE, { defaults: true })[
  'holdfast.metadata.v1.Metadata'
] as ServiceDefinition;

type Form = Pick<ServiceDefinition[string], 'path' | 'requestStream' | 'responseStream'>;

const payloads = [Buffer.of(1, 2, 3), Buffer.alloc(0), Buffer.alloc(3000, 5)];
const ticket = { processId: 'äb', monotonicMs: 12.25, wallMs: 1.7e12 };
const MESSAGES = {
  calls: {
    request: [
      { version: 7, numbers: [], payloads: [] },
      { version: 7, numbers: [0, 1, 4294967295], payloads },
    ],
    response: [
      { version: 7, ticket: null, numbers: [], payloads: [] },
      { version: 7, ticket, numbers: [300, 0, 1], payloads },
    ],
  },
  replicate: { request: [{ version: 7, payloads }], response: [{}] },
};

test('the calls are those of the contract', () => {
  const form = ({ path, requestStream, responseStream }: Form) => ({
    path,
    requestStream,
    responseStream,
  });
  expect(Object.values(METADATA_SERVICE).map(form)).toEqual(Object.values(CONTRACT).map(form));
});

test.each(['calls', 'replicate'] as const)('messages of %s are as the contract has them', (name) => {
  const ours = METADATA_SERVICE[name];
  const theirs = Object.values(CONTRACT).find(({ path }) => path === ours.path);
  if (theirs === undefined) throw new Error(`no call ${name} in the contract`);
  for (const message of MESSAGES[name].request) {
    expect(theirs.requestDeserialize(ours.requestSerialize(message as never))).toEqual(message);
    expect(ours.requestDeserialize(theirs.requestSerialize(message))).toEqual(message);
  }
  for (const message of MESSAGES[name].response) {
    expect(theirs.responseDeserialize(ours.responseSerialize(message as never))).toEqual(message);
    expect(ours.responseDeserialize(theirs.responseSerialize(message))).toEqual(message);
  }
});
