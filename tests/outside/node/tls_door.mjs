// A TLS door: decrypts what arrives with the key and certificate given, and passes it on to a port of this machine.
//
//   node tls_door.mjs <key> <certificate> <port behind>
//
// Prints `ready <port>`; then answers each line on stdin with how many handshakes succeeded and failed.

import { readFileSync } from 'node:fs';
import net from 'node:net';
import readline from 'node:readline';
import tls from 'node:tls';

const [key, cert, behind] = process.argv.slice(2);
const counts = [0, 0];
const door = tls.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (outside) => {
  counts[0] += 1;
  const inside = net.connect(Number(behind), '127.0.0.1');
  outside.pipe(inside).pipe(outside);
  for (const [one, other] of [[outside, inside], [inside, outside]]) one.on('error', () => other.destroy());
});
door.on('tlsClientError', () => { counts[1] += 1; });
door.listen(0, '127.0.0.1', () => console.log(`ready ${door.address().port}`));
readline.createInterface({ input: process.stdin }).on('line', () => console.log(JSON.stringify(counts)));
