#!/usr/bin/env node
/* What rpc.discover answers, checked with OpenRPC's own JSON Schema by ajv. */
import fs from 'node:fs';
import path from 'node:path';
import { ask, check, interopServer, lines, needed, run, same, scratch, skip, source, specServer, test } from './kit.mjs';

const Ajv = needed('ajv');
const folder = path.join(source, '../shared/data/openrpc');
const schemas = fs.existsSync(folder) ? fs.readdirSync(folder).filter(name => name.startsWith('meta-schema-1.3')) : [];
if (!schemas.length)
    skip('OpenRPC\'s schema', 'shared/data/openrpc is not there');

const servers = { 'spec-server': await specServer(`unix:${scratch('a.sock')}`), interop_server: await interopServer(`unix:${scratch('b.sock')}`) };

async function discover(server) {
    const pipe = await lines(server.url('unix:'));
    const { result } = await ask(pipe, 'rpc.discover', []);
    pipe.close();
    return result;
}

/* OpenRPC refers to a page on the network for "any JSON Schema"; draft 7 is what lies there, and ajv brings it along. */
function validator(name) {
    const text = fs.readFileSync(path.join(folder, name), 'utf8')
        .replaceAll('https://meta.json-schema.tools/#/definitions/JSONSchemaObject/properties/$ref', 'http://json-schema.org/draft-07/schema#/properties/$ref')
        .replaceAll('"https://meta.json-schema.tools"', '"http://json-schema.org/draft-07/schema#"');
    const { $schema, ...schema } = JSON.parse(text);
    return new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
}

for (const [name, server] of Object.entries(servers)) {
    for (const schema of schemas)
        test(`${name} by ${schema}`, async () => {
            const validate = validator(schema);
            const document = await discover(server);
            check(validate(document), JSON.stringify(validate.errors?.slice(0, 3)));
            check(!validate({ ...document, methods: [{}] }), 'the schema refuses what is wrong');
        });
    test(`${name}: names are unique, sorted, and each can be called`, async () => {
        const { openrpc, methods } = await discover(server);
        const names = methods.map(method => method.name);
        same(openrpc, '1.2.6');
        same(names, [...new Set(names)].sort());
        check(names.includes('echo'), names.join());
    });
}

await run();
