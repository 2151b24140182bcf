// Version 2, with the client of the draft.
import { report, sdk, start, text, until } from "./lib.mjs";

const acp = await sdk("v2/stable/acp.js");
const methods = acp.methods.agent;
const cwd = process.env.WORK;

async function talk(op) {
  const { stream, ended, child } = start(acp);
  const updates = [], asked = [];
  let wake = () => {}, stop;
  const app = acp
    .client({ name: "test" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      asked.push(params);
      if (stop) {
        stop();
        return { outcome: { outcome: "cancelled" } };
      }
      return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      wake();
    });
  const idle = async (n) => {
    const ends = () => updates.filter((u) => u.sessionUpdate === "state_update" && u.state === "idle" && u.stopReason);
    while (ends().length < n) await new Promise((r) => (wake = r));
    return ends()[n - 1].stopReason;
  };
  const result = await app.connectWith(stream, async (agent) => {
    const greeting = await agent.request(methods.initialize, { protocolVersion: 2, info: { name: "test", version: "1" }, capabilities: {} });
    return op(agent, { updates, asked, greeting, idle, stopping: (f) => (stop = f), of: (kind) => updates.filter((u) => u.sessionUpdate === kind) });
  });
  child.stdin.end();
  return { result, exit: await ended };
}

const first = await talk(async (agent, seen) => {
  report("greeting", [seen.greeting.protocolVersion, seen.greeting.info.name]);
  const session = await agent.request(methods.session.new, { cwd, mcpServers: [] });
  report("options", session.configOptions.map((o) => o.configId));
  const taken = await agent.request(methods.session.prompt, { sessionId: session.sessionId, prompt: text("work") });
  report("stop", await seen.idle(1));
  report("message", seen.of("user_message").map((u) => u.messageId === taken.messageId));
  report("plan", seen.of("plan_update").at(-1).plan.entries.map((e) => [e.content, e.status]));
  const diffs = seen.of("tool_call_update").flatMap((u) => u.content ?? []).filter((c) => c.type === "diff");
  report("diff", [diffs.at(-1).changes[0].operation, diffs.at(-1).patch.format]);
  report("asked", seen.asked.map((a) => a.title));
  report("said", seen.of("agent_message_chunk").map((u) => u.content.text).join(""));
  report("terminal", seen.of("terminal_update").some((u) => u.exitStatus && Buffer.from(u.output.data, "base64").toString().includes("out")));
  seen.stopping(() => agent.notify(methods.session.cancel, { sessionId: session.sessionId }));
  await agent.request(methods.session.prompt, { sessionId: session.sessionId, prompt: text("work") });
  report("cancelled", await seen.idle(2));
  await agent.request(methods.session.setConfigOption, { sessionId: session.sessionId, configId: "mode", type: "id", value: "plan" });
  await until(() => seen.of("config_option_update").length);
  report("mode", seen.of("config_option_update").at(-1).configOptions[0].currentValue);
  return session.sessionId;
});
report("exit", first.exit);

await talk(async (agent, seen) => {
  await agent.request(methods.session.resume, { sessionId: first.result, cwd, mcpServers: [], replayFrom: { type: "start" } });
  await until(() => seen.of("state_update").length);
  report("resumed", [seen.of("user_message").length, seen.of("state_update").at(-1).state]);
  await agent.request(methods.session.delete, { sessionId: first.result });
  report("left", (await agent.request(methods.session.list, {})).sessions.length);
});
