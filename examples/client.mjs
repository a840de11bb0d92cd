#!/usr/bin/env node
// client.mjs FILE PROMPT: submit a task to the hub of this folder, show what its agent says, allow what it asks. FILE keeps the
// position: after a kill -9 of this program or of the hub, run it again with the same FILE and it goes on where it was.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { createInterface } from "node:readline"
import { randomUUID } from "node:crypto"

const [path, prompt] = process.argv.slice(2)
const state = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { key: randomUUID() }
const save = (changes) => {
    writeFileSync(path + ".new", JSON.stringify(Object.assign(state, changes)))
    renameSync(path + ".new", path)
}
const end = (type) => {
    if (/^task\.(completed|failed|cancelled)$/.test(type)) process.exit(type === "task.completed" ? 0 : 1)
}

async function talk(hub) {
    const waiting = new Map()
    let last = 0
    const call = (method, params = {}) => new Promise((resolve) => {
        waiting.set(++last, resolve)
        hub.write(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }) + "\n")
    })
    const answer = (questionId) => call("question.answer", { questionId, option: "allow" })
    createInterface({ input: hub }).on("line", (line) => {
        const message = JSON.parse(line), { type, gseq, data, subscription } = message.params ?? {}
        if (message.method === undefined) {
            if (message.error && message.error.data?.reason !== "questionResolved") throw new Error(message.error.message)
            waiting.get(message.id)(message.result)
        } else if (message.method === "event" && subscription === "task") {
            if (data.update?.sessionUpdate === "agent_message_chunk") process.stdout.write(data.update.content.text ?? "")
            if (type === "session.output") process.stdout.write(data.text)
            if (type === "question.asked") answer(data.questionId)
            save({ gseq })
            end(type)
        }
    })
    const follow = (from) => call("event.subscribe", { ...from, taskId: state.task, id: "task" })
    if (!state.epoch) {
        const here = await call("event.subscribe")
        save({ epoch: here.epoch, gseq: here.head })
    }
    if (!state.task) save({ task: (await call("task.submit", { prompt, _meta: { "weft/idempotencyKey": state.key } })).taskId })
    const here = await follow({ after: state.gseq, epoch: state.epoch })
    if (here.resumed) return
    save({ epoch: here.epoch, gseq: here.head }) // events are missing: from now on, and the state anew
    await follow({ after: here.head })
    end("task." + (await call("task.get", { taskId: state.task })).state)
    for (const question of (await call("question.list")).questions) if (question.taskId === state.task) answer(question.id)
}

const connect = () => {
    const hub = createConnection(".weft/daemon.sock", () => talk(hub)).on("error", () => {}).on("close", () => setTimeout(connect, 500))
}
connect()
