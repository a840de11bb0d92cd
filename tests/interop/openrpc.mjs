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

/* ---- what a row says, and what the server takes ---- */

const { parseOpenRPCDocument, validateOpenRPCDocument } = needed('@open-rpc/schema-utils-js');
const interop = servers.interop_server;
const pipe = await lines(interop.url('unix:'));
const document = await discover(interop);
const order = document.methods.find(({ name }) => name === 'order');
const ajv = new Ajv({ strict: false });

test('OpenRPC\'s own tool reads notifications, examples and descriptions', async () => {
    same(validateOpenRPCDocument(document), true);
    const parsed = await parseOpenRPCDocument(JSON.stringify(document));
    same(parsed.methods.length, document.methods.length);
    same(document.info.description, 'What the *tests* need.');
    same(order.description, 'It comes *soon*.');
    same(document['x-notifications'].map(({ name, summary, description }) => [name, summary, description]),
        [['order_sent', 'it is on its way', 'Told once for each order.']]);
});

test('examples are what the server answers, and fit their schemas', async () => {
    same(order.examples.map(({ name }) => name), ['by name', 'by position']);
    for (const { params, result } of order.examples) {
        for (const { name, value } of params) {
            const { schema } = order.params.find(param => param.name === name);
            check(ajv.validate(schema, value), `${name}: ${ajv.errorsText()}`);
        }
        const byName = Object.fromEntries(params.map(({ name, value }) => [name, value]));
        same((await ask(pipe, 'order', byName)).result, result.value);
        check(ajv.validate(order.result.schema, result.value), ajv.errorsText());
    }
    const [told] = document['x-notifications'];
    for (const { name, value } of told.examples[0].params)
        check(ajv.validate(told.params.find(param => param.name === name).schema, value), name);
});

/* Both ways: what the schema accepts the server takes, what the schema refuses it refuses. */
test('the schemas accept what is accepted, and nothing else', async () => {
    const values = [null, true, false, 0, 1, -1, -3, -4, 10, 11, 2.5, 0.5, 1.5, 1e3, -9007199254740991, 1e19, -1e19, '', 'a', '12345678', '123456789',
        'slow', 'fast', 'Slow', 'vier', 'fuenf', '\u00e4\u00f6\u00fc\u00df', '\u{1f600}\u{1f600}\u{1f600}\u{1f600}', '\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}',
        'a\u0000b', [], [1], [1, 2], [1, 2, 3], {}, { a: 1 }];
    let refused = 0;
    for (const { name, schema } of order.params)
        for (const value of values) {
            const accepted = ajv.validate(schema, value);
            const params = name === 'item' ? { item: value } : { item: 'tea', [name]: value };
            const { result, error } = await ask(pipe, 'order', params);
            same(!!result, accepted, `${name} = ${JSON.stringify(value)}: the server says ${error?.message ?? 'yes'}, the schema ${JSON.stringify(schema)}`);
            if (error)
                same([error.code, error.data.path], [-32602, `/${name}`], JSON.stringify(value));
            refused += !accepted;
        }
    check(refused > 100, `${refused} were refused`);
});

test('what is required is missed', async () => {
    for (const { name, required } of order.params) {
        const params = { item: 'tea', gift: true };
        delete params[name];
        same(!(await ask(pipe, 'order', params)).result, required, name);
    }
});

await run();
