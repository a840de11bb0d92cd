/* Two boundaries of a coding agent's loop, as typed helpers over any transport: Ralph, who works on a task until its gates
 * pass, and the harness around him, who asks a person; and Chief, who gives tasks to Ralphs. The same names work on the hub. */
import { CONTEXT_OVERFLOW, GATE_FAILED, JSONRPCClient, JSONRPCServer, PERMISSION_DENIED, RPCError, TASK_CANCELLED } from './weft.js';

/* A person may take as long as it takes. */
const NO_LIMIT = { timeout: Infinity };

export const gateFailed = (gate, findings) => new RPCError(GATE_FAILED, `Gate failed: ${gate}`, { reason: 'gateFailed', gate, findings });
export const permissionDenied = (message = 'Permission denied') => new RPCError(PERMISSION_DENIED, message, { reason: 'permissionDenied' });
export const taskCancelled = taskId => new RPCError(TASK_CANCELLED, 'Task cancelled', { reason: 'taskCancelled', taskId });
export const contextOverflow = data =>
    new RPCError(CONTEXT_OVERFLOW, 'The request would exceed the context window', { reason: 'contextOverflow', ...data });

const CANCEL_TIMEOUT = 60_000; /* cancelTask is answered when all of the task has ended */

/* notes: { progress: handler, ... }. */
function hearAll(end, notes) {
    for (const [name, handler] of Object.entries(notes))
        if (handler)
            end.onNotify(name, handler);
}

function answerAll(server, methods) {
    for (const [name, handler] of Object.entries(methods))
        if (handler)
            server.method(name, handler);
    return server;
}

const tellers = (client, names) => Object.fromEntries(names.map(name => [name, params => client.notify(name, params)]));

/* Ralph's end of Ralph ↔ harness: ask and tell. */
export function ralphToHarness(transport) {
    const client = new JSONRPCClient(transport);
    return {
        requestPermission: (params, options) => client.request('requestPermission', params, { ...NO_LIMIT, ...options }),
        askUser: (params, options) => client.request('askUser', params, { ...NO_LIMIT, ...options }),
        ...tellers(client, ['iterationStart', 'progress', 'gateResult']),
        destroy: () => client.destroy(),
    };
}

/* The harness's end: answers Ralph's questions, hears what he does. A handler that throws permissionDenied() refuses. */
export function serveRalph(transport, { requestPermission, askUser, onIterationStart, onProgress, onGateResult } = {}) {
    const server = answerAll(new JSONRPCServer(transport), { requestPermission, askUser });
    hearAll(server, { iterationStart: onIterationStart, progress: onProgress, gateResult: onGateResult });
    return server;
}

/* Chief's end of Chief ↔ Ralph. What is told has the taskId, so one Chief can have many. The hub asks what a harness is asked on the
 * same connection: say requestPermission and askUser here then, because two servers on one transport would both answer. */
export function chiefToRalph(transport, { onIterationStart, onProgress, onGateResult, onComplete, requestPermission, askUser } = {}) {
    const client = new JSONRPCClient(transport);
    hearAll(client, { iterationStart: onIterationStart, progress: onProgress, gateResult: onGateResult, complete: onComplete });
    if (requestPermission || askUser)
        answerAll(new JSONRPCServer(transport), { requestPermission, askUser });
    return {
        sendTask: (params, options) => client.request('sendTask', params, options),
        cancelTask: (params, options) => client.request('cancelTask', params, { timeout: CANCEL_TIMEOUT, ...options }),
        /* The hub's: how it ended, or the error that ended it. */
        awaitTask: (params, options) => client.request('awaitTask', params, { ...NO_LIMIT, ...options }),
        destroy: () => client.destroy(),
    };
}

/* Ralph's end: takes tasks. sendTask(params, context) returns { taskId } and works on. */
export function serveChief(transport, { sendTask, cancelTask }) {
    const client = new JSONRPCClient(transport);
    const server = new JSONRPCServer(transport);
    server.method('sendTask', sendTask);
    server.method('cancelTask', cancelTask);
    const destroy = () => (server.destroy(), client.destroy());
    return { ...tellers(client, ['iterationStart', 'progress', 'gateResult', 'complete']), destroy };
}
