// What conditions of policies see of a request to IAM, STS or the operator API.
import { expect, test } from 'vitest';
import { readHeaders } from '../http/request-headers.ts';
import { callerOf } from './authorize-action.ts';

test('a header is the text that it says in UTF-8', () => {
  const page = 'https://b\u00fccher.example/';
  const sent = Buffer.from(page).toString('latin1');
  const headers = readHeaders(['Referer', sent, 'User-Agent', sent]);
  const client = { remoteAddress: '192.0.2.1', scheme: 'http' };
  const { contextOf } = callerOf(
    { principal: { valuesAt: () => () => undefined } } as never,
    { client, headers } as never,
    { nowMs: 0, record: {} as never },
  );
  expect(['aws:referer', 'aws:useragent'].map(contextOf)).toEqual([page, page]);
});
