// jayson_echo.js tcp|http PORT: an echo server with npm's jayson, for comparison. NDJSON over TCP, or HTTP.
'use strict';
const jayson = require('jayson');

const [, , kind, port] = process.argv;
const server = new jayson.Server({ echo: (params, done) => done(null, params[0]) });
const listener = kind === 'http' ? server.http() : server.tcp();

listener.on('connection', (socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => {});
});
listener.listen(Number(port), '127.0.0.1');
