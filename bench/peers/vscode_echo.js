// vscode_echo.js PORT|PATH: an echo server with npm's vscode-jsonrpc, for comparison. Content-Length over TCP or Unix.
'use strict';
const net = require('net');
const rpc = require('vscode-jsonrpc/node');

const where = process.argv[2];

net.createServer((socket) => {
    socket.setNoDelay(true);
    const peer = rpc.createMessageConnection(new rpc.StreamMessageReader(socket), new rpc.StreamMessageWriter(socket));
    peer.onRequest('echo', (text) => text);
    peer.onError(() => {});
    socket.on('error', () => {});
    peer.listen();
}).listen(/^\d+$/.test(where) ? { port: Number(where), host: '127.0.0.1' } : { path: where });
