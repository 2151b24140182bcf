// An agent of version 2 on the protocol's own library: its turn ends with a state.
import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

process.env.OMNIAGENT_TEST_HOSTS = process.argv[2]; // a run hands on no such variable
const { sdk } = await import("./lib.mjs");
const acp = await sdk("v2/stable/acp.js");
const methods = acp.methods.client;
const sessionId = "second", toolCallId = "call", path = process.cwd() + "/made.txt";

async function turn(client) {
  const tell = (update) => client.notify(methods.session.update, { sessionId, update });
  await tell({ sessionUpdate: "state_update", state: "running" });
  const toolCall = { toolCallId, title: "write made.txt", kind: "edit", locations: [{ path }] };
  const { outcome } = await client.request(methods.session.requestPermission, { sessionId, title: "May I write made.txt?", subject: { type: "tool_call", toolCall }, options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }, { optionId: "no", name: "No", kind: "reject_once" }] });
  const allowed = outcome.optionId === "yes";
  if (allowed) writeFileSync(path, "hello\n");
  await tell({ sessionUpdate: "tool_call_update", ...toolCall, status: allowed ? "completed" : "failed" });
  await tell({ sessionUpdate: "agent_message_chunk", messageId: "m2", content: { type: "text", text: allowed ? "I wrote hello" : "I may not." } });
  await tell({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
}

acp
  .agent({ name: "test" })
  .onRequest("initialize", () => ({ protocolVersion: 2, info: { name: "two", version: "1.2.3" }, capabilities: { session: {} } }))
  .onRequest("session/new", () => ({ sessionId, configOptions: [] }))
  .onRequest("session/resume", () => ({ configOptions: [] }))
  .onRequest("session/prompt", ({ client }) => {
    setTimeout(() => turn(client), 0);
    return { messageId: "m1" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
