// What other people's packages say of Discord's wire: `discord-api-spec` (Discord's own published document, as zod
// schemas) of what is sent, `discord-interactions` of signatures.
//
// Each line asks one thing and is answered by one line:
//   {"schema": "MessageCreateRequestSchema", "body": …}       -> ["path: problem", …]
//   {"verify": {"body", "signature", "timestamp", "key"}}     -> {"valid": true|false}

import { createInterface } from 'node:readline';
import * as schemas from 'discord-api-spec/zod';
import { verifyKey } from 'discord-interactions';

async function judged(asked) {
  if (asked.verify) {
    const { body, signature, timestamp, key } = asked.verify;
    return { valid: await verifyKey(body, signature, timestamp, key) };
  }
  const schema = schemas[asked.schema];
  if (!schema) return [`there is no schema ${asked.schema}`];
  const result = schema.safeParse(asked.body);
  if (result.success) return [];
  return result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
}

let before = Promise.resolve();
createInterface({ input: process.stdin })
  .on('line', (line) => {
    before = before.then(async () => console.log(JSON.stringify(await judged(JSON.parse(line)))));
  })
  .on('close', () => before.then(() => process.exit(0)));
