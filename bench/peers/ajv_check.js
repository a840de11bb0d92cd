// ajv_check.js FOLDER: nanoseconds for JSON.parse and a compiled ajv schema on the params there, and for ajv alone; the best of many.
const fs = require('fs');
const path = require('path');
const Ajv = require('ajv/dist/2020');

const folder = process.argv[2];
const validate = new Ajv({ strict: false }).compile(JSON.parse(fs.readFileSync(path.join(folder, 'params.schema.json'), 'utf8')));
const text = fs.readFileSync(path.join(folder, 'params.json'), 'utf8').trim();
const value = JSON.parse(text);
let sink = 0;

function best(once) {
  let least = Infinity;
  for (let i = 0; i < 400; i++) {
    const start = process.hrtime.bigint();
    for (let j = 0; j < 200; j++) once();
    least = Math.min(least, Number(process.hrtime.bigint() - start) / 200);
  }
  return least;
}

function must(ok) {
  if (!ok) throw new Error('it should fit');
  sink++;
}

const whole = best(() => must(validate(JSON.parse(text))));
const check = best(() => must(validate(value)));
console.log(whole.toFixed(1), check.toFixed(1));
