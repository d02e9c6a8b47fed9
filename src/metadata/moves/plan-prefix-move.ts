// The order in which the keys of a prefix are renamed so that no set of them need be gathered first (extensions 2.1),
// also where one prefix begins with the other. With to = from + t the key from + s becomes from + t + s; beside
// t∞ = ttt... that lies nearer to t∞ than s, on the same side. So keys above t∞ are walked upwards and those below it
// downwards: each comes to lie where the walk has been. With from = to + t it is the other way round. Pure.

import { must } from '../../base/assert.ts';
import { afterPrefix, concatBytes, startsWithBytes, utf8 } from '../../base/bytes/bytes.ts';
import { LIMITS } from '../../types/limits.ts';

/** Keys from `gte` on and below `lt`, as UTF-8, walked upwards, or downwards with `reverse`. */
export interface MoveLeg {
  gte: Uint8Array;
  lt: Uint8Array;
  reverse: boolean;
}

/** `from` and `to` differ, and neither is empty. */
export function planPrefixMove(from: string, to: string): MoveLeg[] {
  const source = utf8(from);
  const target = utf8(to);
  const lt = must(afterPrefix(source), 'a prefix of text has something behind it');
  if (startsWithBytes(target, source)) {
    const pivot = repeatBehind(source, target.subarray(source.length));
    return [
      { gte: pivot, lt, reverse: false },
      { gte: source, lt: pivot, reverse: true },
    ];
  }
  if (startsWithBytes(source, target)) {
    const pivot = repeatBehind(source, source.subarray(target.length));
    return [
      { gte: pivot, lt, reverse: true },
      { gte: source, lt: pivot, reverse: false },
    ];
  }
  return [{ gte: source, lt, reverse: false }];
}

/** `head` and `tail`, `tail`, ...: longer than keys are, so that to them it is without an end. */
function repeatBehind(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const count = Math.ceil((LIMITS.keyBytesMax + 1 - head.length) / tail.length);
  return concatBytes(head, ...new Array<Uint8Array>(Math.max(1, count)).fill(tail));
}
