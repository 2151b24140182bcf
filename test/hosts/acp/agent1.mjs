// An agent of version 1 on the protocol's own library: it writes a file with permission, in a form it asks what.
import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

process.env.OMNIAGENT_TEST_HOSTS = process.argv[2]; // a run hands on no such variable
const { sdk } = await import("./lib.mjs");
const acp = await sdk("v1/stable/acp.js");
const methods = acp.methods.client;
const choice = (id, kind) => ({ optionId: id, name: id, kind });
let cancelled = false;

acp
  .agent({ name: "test" })
  .onRequest("initialize", () => ({ protocolVersion: 1, agentInfo: { name: "one", version: "1.2.3" }, agentCapabilities: { loadSession: true, promptCapabilities: { image: true } } }))
  .onRequest("session/new", () => ({ sessionId: "first" }))
  .onRequest("session/load", async ({ client, params: { sessionId } }) => {
    await client.notify(methods.session.update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "of the past" } } });
    return {};
  })
  .onNotification("session/cancel", () => void (cancelled = true))
  .onRequest("session/prompt", async ({ client, params: { sessionId, prompt } }) => {
    const tell = (update) => client.notify(methods.session.update, { sessionId, update });
    const words = prompt.map((b) => b.text).join("");
    const toolCallId = "call", path = process.cwd() + "/made.txt";
    // A message with the answer of a person comes in place of one that the form got.
    let content = words.includes("red") ? "#f00" : words.includes("form") ? "" : "hello\n";
    if (content === "") {
      const filled = await client.request(methods.elicitation.create, { mode: "form", sessionId, message: "Which colour?", requestedSchema: { type: "object", properties: { colour: { type: "string", oneOf: [{ const: "#f00", title: "red" }] } }, required: ["colour"] } });
      content = filled.content?.colour ?? "nothing";
    }
    await tell({ sessionUpdate: "plan", entries: [{ content: "write", priority: "high", status: "in_progress" }] });
    await tell({ sessionUpdate: "tool_call", toolCallId, title: "write made.txt", kind: "edit", status: "pending", locations: [{ path }], content: [{ type: "diff", path, newText: content }] });
    const { outcome } = await client.request(methods.session.requestPermission, { sessionId, toolCall: { toolCallId }, options: [choice("yes", "allow_once"), choice("no", "reject_once")] });
    if (cancelled) return { stopReason: "cancelled" };
    const allowed = outcome.optionId === "yes";
    if (allowed) writeFileSync(path, content);
    await tell({ sessionUpdate: "tool_call_update", toolCallId, status: allowed ? "completed" : "failed" });
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: allowed ? "I wrote " + content : "I may not." } });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
