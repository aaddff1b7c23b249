// A static server for this folder on the loopback address: `node wasm/serve.mjs` shows the page on http://127.0.0.1:8080.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };

/** Serves this folder; port 0 takes a free one. Gives the server and its address. */
export async function serve(port) {
  const server = createServer(answer);
  await new Promise((ready) => server.listen(port, '127.0.0.1', ready));
  return { server, url: `http://127.0.0.1:${server.address().port}/` };
}

async function answer(request, response) {
  // `URL` resolves `..` away, so the file lies in the folder.
  const { pathname } = new URL(request.url, 'http://127.0.0.1');
  const file = join(root, pathname === '/' ? 'index.html' : pathname);
  const found = await stat(file).catch(() => null);
  if (!found?.isFile()) return response.writeHead(404).end();
  response.writeHead(200, {
    'content-type': types[extname(file)] ?? 'application/octet-stream',
    'content-length': found.size,
  });
  createReadStream(file).pipe(response);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await serve(Number(process.env.PORT ?? 8080));
  console.log(`Samara in a tab: ${url}`);
}
