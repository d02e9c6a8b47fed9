// Tells Node where the modules of this project are. They name one another by paths that end in .ts, and Node would look for a
// package.json in the folders above each of several hundred of them, follow links, and ask the disk what each is: a quarter of
// the time that a server takes to load. Packages are found as ever. Imported by main.ts, whose commands load their modules
// behind it; workers and test files get it by `--import`.
// It also spares a start what Node would load for nobody: a module that imports node:http gets all that is exported there, and
// for three of these names Node loads its whole client of fetch and web sockets, which takes longer than all else of HTTP.
import { registerHooks } from 'node:module';

const ROOT = new URL('../', import.meta.url).href;
const isOurs = (specifier: string) => specifier.startsWith('.') && specifier.endsWith('.ts');

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL } = context;
    if (parentURL?.startsWith(ROOT) !== true || !isOurs(specifier)) return next(specifier, context);
    return { url: new URL(specifier, parentURL).href, format: 'module-typescript', shortCircuit: true };
  },
});

const http = process.getBuiltinModule('node:http');
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent'])
  if (name in http) Object.defineProperty(http, name, { enumerable: false });
