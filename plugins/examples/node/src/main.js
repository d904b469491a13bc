import v8 from 'node:v8';
import { handlers } from './provider.js';
import { sandbox } from './sandbox.js';
import { serve } from './serve.js';

// The young generation stays as small as it begins. Otherwise it grows with the load to
// three times 16 MiB that are never given back.
v8.setFlagsFromString('--semi-space-growth-factor=1');

const [command, ...rest] = process.argv.slice(2);
const run = command === 'sandbox' ? () => sandbox(rest) : () => serve(handlers());
run().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
