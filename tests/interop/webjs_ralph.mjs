#!/usr/bin/env node
/* Chief in JavaScript with the real hub: a task whose gate passes in its second iteration, one that is cancelled, a permission that
 * is asked on the same connection. Needs a hub that knows Wiggum's names. */
import fs from 'node:fs';
import path from 'node:path';
import { Hub } from './hub.mjs';
import { check, needed, patiently, run, same, scratch, skip, source, test } from './kit.mjs';

const ws = needed('ws');
const { JSONRPCClient, webSocketTransport } = await import(path.join(source, 'web/weft/weft.js'));
const { chiefToRalph } = await import(path.join(source, 'web/weft/ralph.js'));

/* A gate that fails once and says where. */
const gate = scratch('gate.sh');
fs.writeFileSync(gate, '#!/bin/sh\nif [ -e "$0.seen" ]; then exit 0; fi\n: > "$0.seen"\necho "work.c:3:7: error: not yet"\nexit 1\n', { mode: 0o755 });
const hub = await new Hub({ config: { tasks: { gates: { once: [gate], yes: ['/bin/true'], never: ['/bin/false'] } } } }).start().catch(error => error);

/* The hub's own vocabulary may not be there. */
async function connect() {
    if (hub instanceof Error)
        return undefined;
    const transport = webSocketTransport(`ws://${hub.host}/ws`, { token: hub.token, WebSocket: ws.WebSocket ?? ws });
    const client = new JSONRPCClient(transport);
    const { methods } = await client.request('rpc.discover', {}, { timeout: 30_000 });
    if (!methods.some(({ name }) => name === 'sendTask'))
        return client.destroy();
    await client.request('wiggum/hello');
    return transport;
}
const transport = await connect();
if (!transport) {
    skip('Chief and the hub', 'this hub has no sendTask');
    await run();
}
const told = { iterationStart: [], gateResult: [], complete: [], asked: [] };
let completed = () => {};
const chief = chiefToRalph(transport, {
    onIterationStart: one => told.iterationStart.push(one), onGateResult: one => told.gateResult.push(one),
    onComplete: one => { told.complete.push(one); completed(); },
    requestPermission: one => { told.asked.push(one.taskId); return { allow: true }; },
});

test('a gate that fails once: two iterations, with its findings', async () => {
    const { taskId } = await chief.sendTask({ prompt: 'echo hello', gates: ['once'], maxIterations: 3 });
    const end = await patiently(chief.awaitTask({ taskId }), 'the end');
    same([end.state, end.iterations], ['completed', 2]);
    const mine = told.gateResult.filter(one => one.taskId === taskId);
    same(mine.map(one => [one.gate, one.passed]), [['once', false], ['once', true]]);
    same([mine[0].findings[0].line, told.iterationStart.filter(one => one.taskId === taskId).length], [3, 2]);
    await patiently(new Promise(resolve => (completed = () => told.complete.some(one => one.taskId === taskId) && resolve())()), 'complete');
});

test('what the agent asks is asked on the same connection', async () => {
    const { taskId } = await chief.sendTask({ prompt: 'fix the flaky test', gates: ['yes'] });
    same((await patiently(chief.awaitTask({ taskId }), 'the end')).state, 'completed');
    check(told.asked.includes(taskId), 'nobody asked');
});

test('a gate that never passes is -32002, a cancelled task -32004', async () => {
    const failed = await chief.sendTask({ prompt: 'echo x', gates: ['never'], maxIterations: 1 });
    const error = await patiently(chief.awaitTask(failed).catch(one => one), 'the end');
    same([error.code, error.reason, error.data.gate], [-32002, 'gateFailed', 'never']);
    const long = await chief.sendTask({ prompt: 'echo x', gates: ['never'], maxIterations: 100 });
    const end = chief.awaitTask(long).catch(one => one);
    await chief.cancelTask(long);
    const cancelled = await patiently(end, 'the end');
    check(cancelled.code === -32004 && cancelled.reason === 'taskCancelled', `${cancelled.code} ${cancelled.message}`);
});

await run();
