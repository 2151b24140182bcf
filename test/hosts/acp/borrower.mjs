// An agent of version 1 on the protocol's own library that has no tools: files and commands are its client's.
import { Readable, Writable } from "node:stream";

process.env.OMNIAGENT_TEST_HOSTS = process.argv[2]; // a run hands on no such variable
const { sdk } = await import("./lib.mjs");
const acp = await sdk("v1/stable/acp.js");
const methods = acp.methods.client;
let offered;

acp
  .agent({ name: "test" })
  .onRequest("initialize", ({ params }) => ((offered = params.clientCapabilities), { protocolVersion: 1, agentCapabilities: {} }))
  .onRequest("session/new", () => ({ sessionId: "first" }))
  .onRequest("session/prompt", async ({ client, params: { sessionId, prompt } }) => {
    const tried = [];
    const ask = async (method, params) => {
      try {
        return await client.request(method, { sessionId, ...params });
      } catch (e) {
        tried.push(`${method}: ${e.code}`);
        return {};
      }
    };
    const dir = process.cwd();
    const made = (call) => prompt[0].text.includes("it was made: " + call);
    if (prompt[0].text === "outside") {
      await ask("fs/read_text_file", { path: "/etc/passwd" });
      await ask("fs/write_text_file", { path: dir + "/../made.txt", content: "x" });
      await ask("fs/read_text_file", { path: dir + "/nothing" });
      await ask("terminal/output", { terminalId: "nothing" });
    } else {
      const { content } = await ask("fs/read_text_file", { path: dir + "/lines.txt", line: 2, limit: 1 });
      if (!made("edit")) await ask("fs/write_text_file", { path: dir + "/made.txt", content: content + "!\n" });
      const { terminalId } = made("execute WORD") ? {} : await ask("terminal/create", { command: "sh", args: ["-c", 'cat made.txt; echo "$WORD" >&2; exit 3'], env: [{ name: "WORD", value: "a b" }], cwd: dir });
      if (terminalId) {
        const { exitCode } = await ask("terminal/wait_for_exit", { terminalId });
        const { output, exitStatus } = await ask("terminal/output", { terminalId });
        tried.push(JSON.stringify([exitCode, output, exitStatus.exitCode]));
        await ask("terminal/release", { terminalId });
      }
      if (terminalId || made("execute WORD")) {
        const long = await ask("terminal/create", { command: "sleep", args: ["1000"] });
        await ask("terminal/kill", long);
        tried.push((await ask("terminal/wait_for_exit", long)).signal?.startsWith("SIG") ? "killed" : "ended");
      }
    }
    const text = JSON.stringify([offered.fs, offered.terminal]) + " " + tried.join(" ");
    await client.notify(methods.session.update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
