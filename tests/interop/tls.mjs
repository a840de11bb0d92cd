#!/usr/bin/env node
/* TLS with the openssl program and Node on the other end: who is let in with which certificate, as server and as client. The
 * certificates are made here, in a folder that goes away. */
import { spawn, spawnSync } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import fs from 'node:fs';
import https from 'node:https';
import tls from 'node:tls';
import { check, cleanup, interopServer, optional, patiently, run, same, scratch, skip, test, weftClient } from './kit.mjs';

if (spawnSync('openssl', ['version']).error) {
    skip('tls', 'the openssl program is not installed (tools/install.sh test)');
    await run();
}

/* ---- certificates ---- */

const file = name => scratch(name);
const read = name => fs.readFileSync(file(name));

function openssl(...args) {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
    check(status === 0, `openssl ${args[0]}: ${stderr}`);
}

const day = offset => new Date(Date.now() + offset * 86400000).toISOString().replace(/[-:T]|\.\d+/g, '');

/* signer: the name of a CA, or the certificate's own for self-signed. */
function certificate(name, { signer, subject = name, extensions = [], from = -1, to = 30 }) {
    const folder = file(`ca-${name}`);
    fs.mkdirSync(folder);
    fs.writeFileSync(`${folder}/index.txt`, '');
    fs.writeFileSync(`${folder}/config`, `[ca]\ndefault_ca=me\n[me]\ndatabase=${folder}/index.txt\nnew_certs_dir=${folder}\nrand_serial=yes\n` +
        `default_md=sha256\npolicy=any\nunique_subject=no\nx509_extensions=ext\n[any]\ncommonName=supplied\n[ext]\n${extensions.join('\n')}\n`);
    openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file(`${name}.key`),
        '-out', file(`${name}.csr`), '-subj', `/CN=${subject}`);
    const self = signer === name;
    openssl('ca', '-batch', '-notext', '-config', `${folder}/config`, '-in', file(`${name}.csr`), '-out', file(`${name}.crt`),
        '-startdate', day(from), '-enddate', day(to), '-keyfile', file(`${signer}.key`),
        ...(self ? ['-selfsign'] : ['-cert', file(`${signer}.crt`)]));
}

const authority = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign', 'subjectKeyIdentifier=hash'];
const forServer = ['basicConstraints=CA:FALSE', 'keyUsage=digitalSignature', 'extendedKeyUsage=serverAuth', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
const forClient = ['basicConstraints=CA:FALSE', 'keyUsage=digitalSignature', 'extendedKeyUsage=clientAuth'];
const elsewhere = forServer.with(-1, 'subjectAltName=DNS:elsewhere.example');

certificate('ca', { signer: 'ca', extensions: authority });
certificate('other-ca', { signer: 'other-ca', extensions: authority });
certificate('server', { signer: 'ca', subject: 'localhost', extensions: forServer });
certificate('server-expired', { signer: 'ca', subject: 'localhost', extensions: forServer, from: -30, to: -1 });
certificate('server-early', { signer: 'ca', subject: 'localhost', extensions: forServer, from: 1, to: 30 });
certificate('server-other', { signer: 'other-ca', subject: 'localhost', extensions: forServer });
certificate('server-elsewhere', { signer: 'ca', subject: 'localhost', extensions: elsewhere });
certificate('server-self', { signer: 'server-self', subject: 'localhost', extensions: forServer });
certificate('server-usage', { signer: 'ca', subject: 'localhost', extensions: [...forClient, forServer.at(-1)] });
certificate('client', { signer: 'ca', subject: 'alice', extensions: forClient });
certificate('client-expired', { signer: 'ca', subject: 'alice', extensions: forClient, from: -30, to: -1 });
certificate('client-early', { signer: 'ca', subject: 'alice', extensions: forClient, from: 1, to: 30 });
certificate('client-other', { signer: 'other-ca', subject: 'alice', extensions: forClient });
certificate('client-self', { signer: 'client-self', subject: 'alice', extensions: forClient });
certificate('client-usage', { signer: 'ca', subject: 'alice', extensions: forServer });

const versions = ['TLSv1.2', 'TLSv1.3'];

/* ---- Weft serves ---- */

const own = ['--tls-cert', file('server.crt'), '--tls-key', file('server.key')];
const open = await interopServer(...own, 'tls://127.0.0.1:0', 'https://127.0.0.1:0/rpc', 'wss://127.0.0.1:0/ws');
const mutual = await interopServer(...own, '--tls-ca', file('ca.crt'), 'tls://127.0.0.1:0', 'https://127.0.0.1:0/rpc', 'wss://127.0.0.1:0/ws');

/* What s_client prints up to and including wanted, or all of it when the connection ends first. */
function sClient(port, args, input, wanted) {
    const child = spawn('openssl', ['s_client', '-quiet', '-connect', `127.0.0.1:${port}`, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    let text = '';
    child.stdin.on('error', () => {});
    child.stdin.write(input);
    return patiently(new Promise(resolve => {
        const done = () => { child.kill(); resolve(text); };
        child.stdout.setEncoding('utf8').on('data', piece => { text += piece; if (text.includes(wanted)) done(); });
        child.on('close', done);
    }), 's_client');
}

const ping = '{"jsonrpc":"2.0","id":1,"method":"whoami"}\n';
for (const version of ['-tls1_2', '-tls1_3']) {
    test(`openssl s_client ${version} on tls://`, async () => {
        const text = await sClient(open.port('tls:'), [version, '-CAfile', file('ca.crt'), '-verify_return_error'], ping, '\n');
        same(JSON.parse(text).result.transport, 'tls');
    });
    test(`openssl s_client ${version} on https://`, async () => {
        const body = ping.trim();
        const post = `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
        const text = await sClient(open.port('https:'), [version, '-CAfile', file('ca.crt'), '-verify_return_error'], post, '}}');
        check(/^HTTP\/1\.1 200 /.test(text) && text.includes('"transport":"https"'), text);
    });
}
test('openssl s_client with TLS 1.1 is refused', async () => {
    same(await sClient(open.port('tls:'), ['-tls1_1', '-cipher', 'DEFAULT@SECLEVEL=0'], ping, '\n'), '');
});

/* One call over Node's TLS; the answer, or undefined when the server ended it. TLS 1.3 tells a client only afterwards. */
function nodeCall(port, options) {
    return patiently(new Promise(resolve => {
        const socket = tls.connect({ port, host: '127.0.0.1', ca: read('ca.crt'), ...options }, () => socket.write(ping));
        let text = '';
        socket.setEncoding('utf8').on('data', piece => {
            text += piece;
            if (text.includes('\n')) {
                resolve(JSON.parse(text));
                socket.destroy();
            }
        });
        socket.on('error', () => resolve(undefined)).on('close', () => resolve(undefined));
    }), 'a TLS answer');
}

const identity = name => name ? { cert: read(`${name}.crt`), key: read(`${name}.key`) } : {};
for (const version of versions) {
    const only = { minVersion: version, maxVersion: version };
    test(`mTLS ${version}: a good client certificate, with its name`, async () => {
        const answer = await nodeCall(mutual.port('tls:'), { ...only, ...identity('client') });
        same([answer.result.authenticated, answer.result.name.includes('alice')], [true, true], JSON.stringify(answer));
    });
    for (const name of [undefined, 'client-expired', 'client-early', 'client-other', 'client-self', 'client-usage'])
        test(`mTLS ${version}: refused with ${name ?? 'no client certificate'}`, async () => {
            same(await nodeCall(mutual.port('tls:'), { ...only, ...identity(name) }), undefined);
        });
    test(`${version}: large messages both ways, in many records`, async () => {
        const socket = tls.connect({ port: open.port('tls:'), host: '127.0.0.1', ca: read('ca.crt'), ...only });
        await once(socket, 'secureConnect');
        socket.write(`{"jsonrpc":"2.0","id":1,"method":"echo","params":["${'x'.repeat(1 << 20)}"]}\n`);
        let length = 0;
        await patiently(new Promise(resolve => socket.on('data', piece => {
            length += piece.length;
            if (piece.at(-1) === 10)
                resolve();
        })), 'the answer');
        same(length, (1 << 20) + '{"jsonrpc":"2.0","id":1,"result":[""]}\n'.length);
        socket.destroy();
    });
}

test('mTLS over https and wss', async () => {
    const post = options => new Promise(resolve => {
        const req = https.request({ port: mutual.port('https:'), host: '127.0.0.1', path: '/rpc', method: 'POST', ca: read('ca.crt'), ...options,
            headers: { 'Content-Type': 'application/json' } }, res => {
            let text = '';
            res.setEncoding('utf8').on('data', piece => { text += piece; }).on('end', () => resolve([res.statusCode, JSON.parse(text)]));
        });
        req.on('error', () => resolve(undefined)).end(ping);
    });
    const [status, answer] = await post(identity('client'));
    same([status, answer.result.transport], [200, 'https']);
    same(await post({}), undefined);
    const WebSocket = optional('ws');
    if (!WebSocket)
        return;
    const attempt = options => new Promise(resolve => {
        const ws = new WebSocket(mutual.url('wss:'), { ca: read('ca.crt'), ...options });
        ws.on('open', () => ws.send(ping)).on('message', data => { resolve(JSON.parse(data).result.transport); ws.terminate(); });
        ws.on('error', () => resolve(undefined)).on('close', () => resolve(undefined));
    });
    same(await attempt(identity('client')), 'wss');
    same(await attempt({}), undefined);
});

test('garbage instead of a handshake, and a handshake that never ends, hurt nobody', async () => {
    const { default: net } = await import('node:net');
    const socket = net.connect(open.port('tls:'), '127.0.0.1');
    socket.on('error', () => {}).write('GET / HTTP/1.1\r\n\r\n');
    await patiently(once(socket.resume(), 'close'), 'the close');
    const silent = net.connect(open.port('tls:'), '127.0.0.1');
    silent.on('error', () => {}).write(Buffer.from([22, 3, 1, 2, 0, 1]));
    same((await nodeCall(open.port('tls:'), {})).result.transport, 'tls');
    silent.destroy();
});

/* ---- Weft calls ---- */

/* A TLS server that answers every line with the name of its client. */
async function theirs(name, options = {}) {
    const server = tls.createServer({ ...identity(name), ...options }, socket => {
        socket.on('error', () => {}).setEncoding('utf8');
        let rest = '';
        socket.on('data', piece => {
            rest += piece;
            for (let at; (at = rest.indexOf('\n')) >= 0; rest = rest.slice(at + 1))
                socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(rest.slice(0, at)).id, result: [socket.getProtocol(), socket.getPeerCertificate().subject?.CN ?? null] })}\n`);
        });
    });
    server.on('tlsClientError', () => {});
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    cleanup(() => server.close());
    return server.address().port;
}

const ca = ['--ca', file('ca.crt')];
/* A bare container may have no /etc/hosts; the certificates are good for the address too. */
const host = await lookup('localhost').then(() => 'localhost', () => '127.0.0.1');
if (host === 'localhost')
    test('Weft calls by a name', async () => {
        const port = await theirs('server');
        same((await weftClient(...ca, `tls://localhost:${port}`, 'any'))[0].result?.length, 2);
    });
else
    skip('Weft calls by a name', 'this machine does not know the name localhost: add the line "127.0.0.1 localhost" to /etc/hosts');
for (const version of versions) {
    const only = { minVersion: version, maxVersion: version };
    test(`Weft calls with ${version}`, async () => {
        const port = await theirs('server', only);
        same(await weftClient(...ca, `tls://127.0.0.1:${port}`, 'any'), [{ result: [version, null] }]);
        same(await weftClient(...ca, `tls://${host}:${port}`, 'any'), [{ result: [version, null] }]);
    });
    for (const name of ['server-expired', 'server-early', 'server-other', 'server-elsewhere', 'server-self', 'server-usage'])
        test(`Weft refuses ${name} with ${version}`, async () => {
            const port = await theirs(name, only);
            const lines = await weftClient(...ca, `tls://${host}:${port}`, 'any');
            check(lines.length === 1 && lines[0].failed && lines[0].trouble, JSON.stringify(lines));
            same((await weftClient('--insecure', `tls://${host}:${port}`, 'any'))[0].result?.[0], version, 'asked not to verify');
        });
    test(`Weft shows its certificate with ${version}`, async () => {
        const port = await theirs('server', { ...only, ca: read('ca.crt'), requestCert: true, rejectUnauthorized: true });
        const shown = name => ['--cert', file(`${name}.crt`), '--key', file(`${name}.key`)];
        same(await weftClient(...ca, ...shown('client'), `tls://${host}:${port}`, 'any'), [{ result: [version, 'alice'] }]);
        for (const args of [[], shown('client-other'), shown('client-expired')])
            check((await weftClient(...ca, ...args, `tls://${host}:${port}`, 'any'))[0].failed, `refused with ${args}`);
    });
}
test('Weft: another name may be expected', async () => {
    const port = await theirs('server-elsewhere');
    same((await weftClient(...ca, '--name', 'elsewhere.example', `tls://127.0.0.1:${port}`, 'any'))[0].result?.length, 2);
    check((await weftClient(...ca, '--name', 'other.example', `tls://127.0.0.1:${port}`, 'any'))[0].failed, 'refused');
});
test('Weft: the system\'s roots do not know our CA', async () => {
    check((await weftClient(`tls://${host}:${await theirs('server')}`, 'any'))[0].failed, 'refused');
});
test('Weft calls Weft over tls, wss and https, with mTLS', async () => {
    const shown = ['--cert', file('client.crt'), '--key', file('client.key')];
    for (const scheme of ['tls:', 'wss:', 'https:'])
        same((await weftClient(...ca, ...shown, mutual.url(scheme), 'whoami'))[0].result?.transport, scheme.slice(0, -1), scheme);
    for (const scheme of ['tls:', 'wss:', 'https:'])
        check((await weftClient(...ca, mutual.url(scheme), 'whoami'))[0].failed, `${scheme} without a certificate`);
});
for (const version of ['-tls1_2', '-tls1_3'])
    test(`openssl s_server ${version} as the server`, async () => {
        const child = spawn('openssl', ['s_server', version, '-accept', '127.0.0.1:0', '-cert', file('server.crt'), '-key', file('server.key')]);
        cleanup(() => child.kill());
        let text = '';
        const accepting = new Promise(resolve => child.stdout.setEncoding('utf8').on('data', piece => {
            text += piece;
            const port = /^ACCEPT 127\.0\.0\.1:(\d+)/m.exec(text)?.[1];
            if (port)
                resolve(port);
            if (/"method":"any"\}\n/.test(piece))
                child.stdin.write('{"jsonrpc":"2.0","id":1,"result":"from openssl"}\n');
        }));
        const port = await patiently(accepting, 's_server');
        same(await weftClient(...ca, `tls://${host}:${port}`, 'any'), [{ result: 'from openssl' }]);
    });

await run();
