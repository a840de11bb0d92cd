/* A child process with vscode-jsonrpc on its stdio, for vscode_jsonrpc.mjs. */
const { createRequire } = require('node:module');
const path = require('node:path');
const rpc = createRequire(path.join(__dirname, '../../build/tools/node_modules/'))('vscode-jsonrpc/node');

const peer = rpc.createMessageConnection(new rpc.StreamMessageReader(process.stdin), new rpc.StreamMessageWriter(process.stdout));
peer.onRequest('double', n => n * 2);
peer.onRequest('shout', ({ s }) => s.toUpperCase());
peer.onClose(() => process.exit(0));
peer.listen();
