// What the scripts share: the program at the other end of an SDK's client, and what it said.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.OMNIAGENT_TEST_HOSTS + "/");

// sdk is a part of the protocol's own library.
export const sdk = (part) => import(pathToFileURL(process.env.OMNIAGENT_TEST_HOSTS + "/@agentclientprotocol/sdk/dist/" + part));

// start starts the program; its arguments are ours.
export function start(acp, ...more) {
  const child = spawn(process.env.PROGRAM, [...JSON.parse(process.env.ARGS), ...more], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  return { stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), ended, child };
}

// report prints what the test compares.
export const report = (name, value) => console.log(JSON.stringify({ [name]: value }));

export const text = (s) => [{ type: "text", text: s }];

// until waits: the client hands a notification on beside the answer that came behind it.
export async function until(done) {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
}
