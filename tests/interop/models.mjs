/* A model server on this machine for agents that are not ours: what OpenAI's Responses API and Gemini's generateContent answer,
 * as server-sent events. It has no model: the last words of the person decide. Not a test itself.
 *
 *     "say WORDS"    WORDS, as the answer
 *     "run COMMAND"  a call of the agent's shell tool; when its result comes back, "it said: RESULT" */
import { once } from 'node:events';
import http from 'node:http';
import { cleanup } from './kit.mjs';

const brief = text => String(text).replace(/\s+/g, ' ').trim().slice(0, 200);

/* What to do about this conversation: { say } or { run }. */
function decide(words, result) {
    if (result !== undefined)
        return { say: `it said: ${brief(result)}` };
    const run = /\brun (.+)$/m.exec(words);
    const say = /\bsay (.+)$/m.exec(words);
    return run ? { run: run[1].trim() } : { say: say ? say[1].trim() : 'nothing' };
}

/* ---- OpenAI ---- */

const usage = { input_tokens: 7, input_tokens_details: { cached_tokens: 0 }, output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 12 };

function responsesEvents(body) {
    const input = Array.isArray(body.input) ? body.input : [];
    const person = input.filter(one => one.role === 'user').at(-1);
    const words = (person?.content ?? []).map(one => one.text ?? '').join('\n');
    const after = input.slice(input.lastIndexOf(person) + 1).filter(one => /_call_output$/.test(one.type));
    const output = after.at(-1)?.output;
    const what = decide(words, output === undefined ? undefined : typeof output === 'string' ? output : JSON.stringify(output));
    const id = `resp_${input.length}`;
    const shell = (body.tools ?? []).map(one => one.name).find(name => /exec_command|shell/.test(name ?? ''));
    const asks = { sandbox_permissions: 'require_escalated', justification: 'It was asked for.' };
    const command = shell === 'exec_command' ? { cmd: what.run, ...asks } : shell === 'shell_command' ? { command: what.run }
        : { command: ['sh', '-c', what.run] };
    const item = what.run && shell
        ? { type: 'function_call', id: 'fc_1', call_id: `call_${input.length}`, name: shell, arguments: JSON.stringify(command), status: 'completed' }
        : { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: what.say ?? 'I have no shell', annotations: [] }] };
    const events = [{ type: 'response.created', response: { id, status: 'in_progress', output: [] } },
        { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [], status: 'in_progress' } }];
    if (item.type === 'message')
        events.push({ type: 'response.output_text.delta', item_id: item.id, output_index: 0, content_index: 0, delta: item.content[0].text });
    events.push({ type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { id, status: 'completed', output: [item], usage } });
    return events;
}

/* ---- Gemini ---- */

function geminiAnswer(body, script) {
    const contents = body.contents ?? [];
    const last = contents.at(-1)?.parts ?? [];
    const result = last.find(part => part.functionResponse)?.functionResponse.response;
    const texts = contents.filter(one => one.role === 'user').map(one => (one.parts ?? []).map(part => part.text ?? '').join('\n'));
    const words = script ? texts.map(script).filter(Boolean).at(-1) ?? '' : texts.filter(text => /\b(say|run) /.test(text)).at(-1) ?? '';
    const what = decide(words, result === undefined ? undefined : result.output ?? JSON.stringify(result));
    const tools = (body.tools ?? []).flatMap(one => one.functionDeclarations ?? []).map(one => one.name);
    const part = what.run && tools.includes('run_shell_command')
        ? { functionCall: { name: 'run_shell_command', args: { command: what.run, description: 'what was asked for' } } }
        : { text: what.say ?? 'I have no shell' };
    return { candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 }, modelVersion: 'fake' };
}

/* ---- the server ---- */

async function bodyOf(request) {
    let text = '';
    for await (const piece of request.setEncoding('utf8'))
        text += piece;
    try {
        return JSON.parse(text);
    } catch {
        return {};
    }
}

/* { url, asked: what came, in order }. script: what a person's text stands for ("run make"), or nothing; for Gemini alone. */
export async function modelServer(script) {
    const asked = [];
    const server = http.createServer(async (request, response) => {
        const body = await bodyOf(request);
        const path = request.url.split('?')[0];
        asked.push({ path, body });
        const json = value => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
        const stream = events => {
            response.writeHead(200, { 'Content-Type': 'text/event-stream' });
            events.forEach(one => response.write(`${one.type ? `event: ${one.type}\n` : ''}data: ${JSON.stringify(one)}\n\n`));
            response.end();
        };
        if (/\/responses$/.test(path))
            stream(responsesEvents(body));
        else if (/:streamGenerateContent$/.test(path))
            stream([geminiAnswer(body, script)]);
        else if (/:generateContent$/.test(path))
            json(geminiAnswer(body, script));
        else if (/:countTokens$/.test(path))
            json({ totalTokens: 7 });
        else if (/\/models$/.test(path))
            json({ object: 'list', data: [], models: [] });
        else
            response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"error":{"message":"there is no such thing here"}}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanup(() => { server.closeAllConnections(); server.close(); });
    return { url: `http://127.0.0.1:${server.address().port}`, asked };
}
