// Version 1, with the stable client: sessions, questions, cancelling, loading, modes, plans, diffs.
import { report, sdk, start, text, until } from "./lib.mjs";

const acp = await sdk("v1/stable/acp.js");
const methods = acp.methods.agent;
const cwd = process.env.WORK;

// talk runs one connection; every update is kept.
async function talk(choose, op, capabilities = {}) {
  const { stream, ended, child } = start(acp);
  const updates = [], asked = [], seen = { updates, asked, answer: choose, of: (kind) => updates.filter((u) => u.sessionUpdate === kind) };
  const app = acp
    .client({ name: "test" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      return seen.answer(params);
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => void updates.push(params.update));
  const result = await app.connectWith(stream, async (agent) => {
    seen.greeting = await agent.request(methods.initialize, { protocolVersion: 1, clientCapabilities: capabilities });
    return op(agent, seen);
  });
  child.stdin.end();
  return { result, exit: await ended };
}

const choose = (kind) => (params) => ({ outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === kind).optionId } });

const first = await talk(choose("allow_once"), async (agent, seen) => {
  report("greeting", [seen.greeting.protocolVersion, seen.greeting.agentCapabilities.loadSession]);
  const session = await agent.request(methods.session.new, { cwd, mcpServers: [] });
  report("modes", session.modes.availableModes.map((m) => m.id));
  const done = await agent.request(methods.session.prompt, { sessionId: session.sessionId, prompt: text("work") });
  report("stop", done.stopReason);
  report("plan", seen.of("plan").at(-1).entries.map((e) => [e.content, e.status]));
  const diffs = seen.of("tool_call_update").flatMap((u) => u.content ?? []).filter((c) => c.type === "diff");
  report("diff", [diffs.at(-1).oldText, diffs.at(-1).newText]);
  report("asked", seen.asked.map((a) => a.toolCall.title));
  report("said", seen.of("agent_message_chunk").map((u) => u.content.text).join(""));
  await agent.request(methods.session.setMode, { sessionId: session.sessionId, modeId: "plan" });
  await until(() => seen.of("current_mode_update").length);
  report("mode", seen.of("current_mode_update").at(-1).currentModeId);
  return session.sessionId;
});
report("exit", first.exit);

await talk(choose("reject_once"), async (agent, seen) => {
  const listed = await agent.request(methods.session.list, { cwd });
  report("listed", listed.sessions.map((s) => [s.sessionId === first.result, s.title]));
  const loaded = await agent.request(methods.session.load, { sessionId: first.result, cwd, mcpServers: [] });
  report("kept", loaded.modes.currentModeId);
  report("loaded", seen.updates.map((u) => u.sessionUpdate));
  await agent.request(methods.session.setMode, { sessionId: first.result, modeId: "prompt" });
  const done = await agent.request(methods.session.prompt, { sessionId: first.result, prompt: text("work") });
  report("rejected", [done.stopReason, seen.of("tool_call_update").filter((u) => u.status === "failed").length]);
  seen.answer = async () => {
    await agent.notify(methods.session.cancel, { sessionId: first.result });
    return { outcome: { outcome: "cancelled" } };
  };
  const cancelled = await agent.request(methods.session.prompt, { sessionId: first.result, prompt: text("work") });
  report("cancelled", cancelled.stopReason);
  await agent.request(methods.session.close, { sessionId: first.result });
});
