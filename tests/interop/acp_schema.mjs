/* ACP's schema, for the scripts that check what is said against it. */
import fs from 'node:fs';
import path from 'node:path';
import { check, needed, skip, source } from './kit.mjs';

const Ajv = needed('ajv/dist/2020').default;
const file = path.join(source, '../shared/data/acp-schema/v1/schema.json');
const schema = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined;
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
if (schema)
    ajv.addSchema(schema, 'acp');
else
    skip('ACP\'s schema', 'shared/data/acp-schema is not there');

/* The value is what the schema calls by this name. */
export function conforms(value, name) {
    if (!schema)
        return;
    const validate = ajv.getSchema(`acp#/$defs/${name}`);
    check(validate, `the schema has no ${name}`);
    check(validate(value), `${name}: ${JSON.stringify(validate.errors?.slice(0, 3))} in ${JSON.stringify(value)}`);
}

/* Can it be told at all from something empty? Otherwise the check above could not fail. */
export function refusesEmpty(name) {
    return !schema || !ajv.getSchema(`acp#/$defs/${name}`)({});
}
