// One attack in a process of its own, so that the well-behaved client is not slowed down by its work: begins, says so,
// goes on until its standard input ends, then prints what it was answered.
// Arguments: the attack's number, and { account, scale } as JSON.
import { once } from 'node:events';
import type { Access } from '../../tests/support/servers/raw-s3.ts';
import { ATTACKS } from './attacks.ts';
import { Crowd } from './crowd.ts';

const [number, json = '{}'] = process.argv.slice(2);
const { account, scale } = JSON.parse(json) as { account: Access; scale: number };
const { hostname, port } = new URL(account.endpoint);
const crowd = new Crowd({ host: hostname, port: Number(port), localAddress: '127.0.0.2' });
const attack = ATTACKS[Number(number)];
if (attack === undefined) throw new Error(`there is no attack ${number}`);

process.stdin.resume();
const ended = once(process.stdin, 'end');
await Promise.race([attack.begin({ crowd, account, scale }), ended]);
process.stdout.write('begun\n');
await ended;
await crowd.stop();
const answers = Object.fromEntries(crowd.answers);
process.stdout.write(`${JSON.stringify({ answers, endedCount: crowd.endedCount })}\n`, () => process.exit(0));
