// The Slack of `emulate`, which nobody here wrote, for our client to talk to.
//
// Prints `ready <base address of its Web API>`; ends with its standard input. One workspace, one channel `ops`. The
// token `xoxb-countersign` is a person's, since emulate leaves `bot_id` out of the messages a bot posts, by which our
// client knows its own; `xoxb-scopeless` may only write.

import { createServer } from 'node:net';
import { createEmulator } from 'emulate';

const free = await new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const scopes = [
  'chat:write', 'im:write', 'users:read', 'channels:read', 'groups:read', 'im:read', 'channels:history',
  'groups:history', 'im:history',
];
await createEmulator({
  service: 'slack',
  port: free,
  seed: {
    slack: {
      strict_scopes: true,
      team: { name: 'Acme', domain: 'acme' },
      users: [{ name: 'dana', real_name: 'Dana Lee', email: 'dana@example.com' }],
      channels: [{ name: 'ops' }],
      tokens: [
        { token: 'xoxb-countersign', type: 'bot', user: 'U000000001', scopes },
        { token: 'xoxb-scopeless', type: 'bot', user: 'U000000001', scopes: ['chat:write'] },
      ],
    },
  },
});
process.stdin.on('end', () => process.exit(0)).resume();
console.log(`ready http://127.0.0.1:${free}/api`);
