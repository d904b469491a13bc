// Builds build/nodepay, a single executable file: Node itself with the bundled
// program in it. manifest.json and examples.json lie beside it.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { buildSync } from 'esbuild';
import { inject } from 'postject';

// The Node that goes into the binary is pinned by package-lock.json: whichever
// one runs this script, the same sources make the same plugin.
const node = join(dirname(createRequire(import.meta.url).resolve(`node-linux-${process.arch}/package.json`)), 'bin/node');

const out = 'build';
rmSync(out, { recursive: true, force: true });
mkdirSync(out);

buildSync({
  entryPoints: ['src/main.js'],
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'cjs', // all that a single executable takes
  loader: { '.proto': 'text' },
  outfile: join(out, 'bundle.cjs'),
});

writeFileSync(join(out, 'sea.json'), JSON.stringify({
  main: join(out, 'bundle.cjs'),
  output: join(out, 'blob'),
  disableExperimentalSEAWarning: true,
}));
execFileSync(node, ['--experimental-sea-config', join(out, 'sea.json')], { stdio: ['ignore', 'ignore', 'inherit'] });

const binary = join(out, 'nodepay');
copyFileSync(node, binary);
await inject(binary, 'NODE_SEA_BLOB', readFileSync(join(out, 'blob')), {
  sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
});

for (const file of ['manifest.json', 'examples.json']) copyFileSync(file, join(out, file));
for (const file of ['bundle.cjs', 'sea.json', 'blob']) rmSync(join(out, file));
