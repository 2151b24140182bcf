// xterm.mjs is @xterm/headless behind lines of JSON: see Emulator in emulator.go.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(process.env.OMNIAGENT_TEST_HOSTS + "/");
const { Terminal } = require("@xterm/headless");

const [cols, rows] = process.argv.slice(2).map(Number);
const terminal = new Terminal({ cols, rows, scrollback: 1000000, allowProposedApi: true });
let answer = "";
terminal.onData((data) => (answer += data));

// text returns a row. A cell at its end that was never written is left out: a wide character did not fit into it.
function text(line) {
  let s = "", blank = "";
  for (let x = 0; x < line.length; x++) {
    const cell = line.getCell(x);
    if (cell.getWidth() === 0) continue;
    if (cell.getChars() === "") blank += " ";
    else (s += blank + cell.getChars()), (blank = "");
  }
  return s;
}

function dump() {
  const buffer = terminal.buffer.active;
  const lines = [], screen = [];
  for (let y = 0; y < buffer.length; y++) {
    const line = buffer.getLine(y);
    if (line.isWrapped && lines.length > 0) lines[lines.length - 1] += text(line);
    else lines.push(text(line));
    if (y >= buffer.baseY) screen.push(text(line).trimEnd());
  }
  return { lines: lines.map((l) => l.trimEnd()), screen, row: buffer.cursorY, column: buffer.cursorX };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { write, resize } = JSON.parse(line);
  let reply = {};
  if (write) {
    await new Promise((done) => terminal.write(Buffer.from(write, "base64"), done));
    reply = { answer: Buffer.from(answer).toString("base64") };
    answer = "";
  } else if (resize) terminal.resize(...resize);
  else reply = dump();
  process.stdout.write(JSON.stringify(reply) + "\n");
}
