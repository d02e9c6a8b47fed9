// The interactive documentation: swagger-ui's own files, as they are installed beside the program, and a page that starts it on
// /api/v1/openapi.json. Nothing is fetched from elsewhere, and the page's policy does not let it.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { ownValue } from '../../base/own-value.ts';
import { AppError } from '../../types/errors.ts';
import { pathOf, type RouteAnswer } from '../http/service-route.ts';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Holdfast account management</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="api"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;
const START = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
});
`;

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
const HEADERS = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'max-age=3600',
};

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';
/** Of the package swagger-ui-dist. */
const PACKAGED: Readonly<Record<string, string>> = {
  'swagger-ui-bundle.js': SCRIPT,
  'swagger-ui.css': STYLE,
};
const kept = new Map<string, Promise<Buffer>>();

/** Rejects with NoSuchEntity where there is no such file. */
export async function readDocsFile(uri: string, prefix: string): Promise<RouteAnswer> {
  const path = pathOf(uri);
  if (path === prefix) return answerOf('text/html; charset=utf-8', PAGE);
  // The page's links are relative to the path without a slash.
  if (path === `${prefix}/`)
    return { ...answerOf('text/plain', ''), status: 308, headers: { Location: prefix } };
  const name = path.slice(prefix.length + 1);
  if (name === 'start.js') return answerOf(SCRIPT, START);
  const type = ownValue(PACKAGED, name);
  if (type === undefined) throw new AppError('NoSuchEntity', { message: 'There is no such page.' });
  return answerOf(type, await readPackaged(name));
}

function answerOf(contentType: string, body: string | Buffer): RouteAnswer {
  return { status: 200, contentType, body, headers: HEADERS };
}

function readPackaged(name: string): Promise<Buffer> {
  let file = kept.get(name);
  if (file === undefined) {
    file = readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`));
    kept.set(name, file);
    file.catch(() => kept.delete(name));
  }
  return file;
}
