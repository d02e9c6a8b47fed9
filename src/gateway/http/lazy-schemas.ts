// Schemas of requests are compiled one by one: each at the first request that it checks, or before, one in a turn of the event loop.
// Fastify by itself compiles those of all routes in one piece, and nobody else is served meanwhile.
import AjvCompiler from '@fastify/ajv-compiler';
import { nextTurn } from '../../base/async/next-turn.ts';

type Build = ReturnType<typeof AjvCompiler>;
type Compile = ReturnType<Build>;
type Check = ReturnType<Compile>;

export interface LazySchemas {
  /** For fastify, in the place of its own. */
  readonly buildValidator: Build;
  /** Compiles those that nobody has needed yet. */
  compileAll(): Promise<void>;
}

export function createLazySchemas(): LazySchemas {
  const build = AjvCompiler();
  const waiting = new Set<() => unknown>();

  function lazily(compile: () => Check): Check {
    let compiled: Check | undefined;
    const ready = (): Check => {
      compiled ??= compile();
      waiting.delete(ready);
      return compiled;
    };
    waiting.add(ready);
    const check = ((data: unknown) => {
      const checks = ready();
      const isFit = checks(data);
      check.errors = checks.errors ?? null;
      return isFit;
    }) as Check;
    return check;
  }

  return {
    buildValidator(schemas, options) {
      let compile: Compile | undefined;
      return (route) =>
        lazily(() => {
          compile ??= build(schemas, options);
          return compile(route);
        });
    },
    async compileAll() {
      for (const ready of waiting) {
        await nextTurn();
        ready();
      }
    },
  };
}
