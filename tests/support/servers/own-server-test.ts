// A test that looks inside of its server or needs an odd one: skipped where the server is given (given-server.ts).
import { test } from 'vitest';
import { isServerGiven } from './given-server.ts';

export const ownServerTest: typeof test = isServerGiven() ? (test.skip as typeof test) : test;
