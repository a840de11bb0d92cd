#!/usr/bin/env node
// client.mjs FILE PROMPT: submit a task to the hub of this folder, show what its agent says, allow what it asks. FILE keeps the
// position: after a kill -9 of this program or of the hub, run it again with the same FILE and it goes on where it was.
import { randomUUID } from "node:crypto"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { createInterface } from "node:readline"

const [file, prompt] = process.argv.slice(2)
const state = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { key: randomUUID(), after: 0 }
const save = (changes) => {
    writeFileSync(file + ".new", JSON.stringify(Object.assign(state, changes)))
    renameSync(file + ".new", file)
}

async function talk(hub) {
    const waiting = []
    const call = (method, params = {}) => new Promise((resolve) => {
        hub.write(JSON.stringify({ jsonrpc: "2.0", id: waiting.push(resolve), method, params }) + "\n")
    })
    const allow = (questionId) => call("question.answer", { questionId, option: "allow" })
    const dealWith = ({ type, data = {} }) => {
        if (data.update?.sessionUpdate === "agent_message_chunk") process.stdout.write(data.update.content.text ?? "")
        if (type === "session.output") process.stdout.write(data.text)
        if (type === "question.asked") allow(data.questionId)
        if (/^task\.(completed|failed|cancelled)$/.test(type)) process.exit(type === "task.completed" ? 0 : 1)
    }
    createInterface({ input: hub }).on("line", (line) => {
        const { id, result, error, method, params } = JSON.parse(line)
        if (error && error.code !== 409) throw new Error(error.message) // 409: somebody has answered already
        if (id) waiting[id - 1](result)
        if (method !== "event") return
        dealWith(params)
        save({ after: params.gseq })
    })
    const follow = () => call("event.subscribe", { taskId: state.task, after: state.after, epoch: state.epoch })
    if (!state.task) save({ task: (await call("task.submit", { prompt, _meta: { "weft/idempotencyKey": state.key } })).taskId })
    const { resumed, epoch, head } = await follow()
    save(resumed ? { epoch } : { epoch, after: head })
    if (!resumed) { // events are missing: follow from here, and read the state
        await follow()
        dealWith({ type: "task." + (await call("task.get", { taskId: state.task })).state })
    }
    for (const each of (await call("question.list")).questions) if (each.taskId === state.task) allow(each.id) // lost with the hub?
}

save({})
const connect = () => {
    const hub = createConnection(".weft/daemon.sock", () => talk(hub)).on("error", () => {}).on("close", () => setTimeout(connect, 500))
}
connect()
