// The scenarios of a host that is built on the public SDK. One of them is run, and what it saw is printed as one JSON object.
//
//   node scenarios.mjs NAME     with EXECUTABLE, WORK, MODULES and, of some, further values in the environment
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const { EXECUTABLE, WORK, MODULES } = process.env
const load = (name) => import(pathToFileURL(createRequire(MODULES + '/x.js').resolve(name)).href)
const { query, tool, createSdkMcpServer } = await load('@anthropic-ai/claude-agent-sdk')
const { z } = await load('zod')

const stderr = []
const base = (more = {}) => ({
  pathToClaudeCodeExecutable: EXECUTABLE,
  cwd: WORK,
  settingSources: [],
  stderr: (text) => stderr.push(text),
  ...more,
})

// seen sums up the messages of a conversation.
function watch() {
  const seen = { kinds: [], results: [], texts: [], sessions: [], inits: [], toolResults: [], partial: [], thrown: null }
  seen.hear = (m) => {
    seen.kinds.push(m.type + (m.subtype ? '/' + m.subtype : ''))
    if (m.session_id && !seen.sessions.includes(m.session_id)) seen.sessions.push(m.session_id)
    if (!m.uuid && m.type !== 'control_response') seen.noUUID = (seen.noUUID ?? []).concat(m.type)
    if (m.type === 'result') seen.results.push(m)
    if (m.type === 'system' && m.subtype === 'init') seen.inits.push({ model: m.model, mode: m.permissionMode, tools: m.tools, servers: m.mcp_servers, agents: m.agents })
    if (m.type === 'assistant') for (const b of m.message.content) if (b.type === 'text') seen.texts.push(b.text)
    if (m.type === 'assistant' && m.message.content.length !== 1) seen.wide = true
    if (m.type === 'user' && Array.isArray(m.message.content)) {
      for (const b of m.message.content) if (b.type === 'tool_result') seen.toolResults.push({ text: flat(b.content), failed: b.is_error === true, parent: m.parent_tool_use_id })
    }
    if (m.type === 'stream_event') seen.partial.push(m.event)
  }
  return seen
}
const flat = (c) => (typeof c === 'string' ? c : (c ?? []).map((b) => b.text ?? b.type).join('\n'))

// inputs is a conversation's input that the scenario fills.
function inputs() {
  const waiting = []
  let wake = () => {}
  let ended = false
  return {
    say: (content, more = {}) => { waiting.push({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null, session_id: '', ...more }); wake() },
    end: () => { ended = true; wake() },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        if (waiting.length) { yield waiting.shift(); continue }
        if (ended) return
        await new Promise((r) => { wake = r })
      }
    },
  }
}

// ask is one prompt to its end.
async function ask(prompt, options, watching = watch()) {
  const q = query({ prompt, options: base(options) })
  try {
    for await (const m of q) watching.hear(m)
  } catch (e) { watching.thrown = String(e?.message ?? e) }
  return watching
}

// talk says the messages one after the other, each behind the result of the one before; between(i, q, seen) runs in between.
async function talk(messages, options, between = async () => {}) {
  const seen = watch()
  const input = inputs()
  const q = query({ prompt: input, options: base(options) })
  let i = 0
  input.say(messages[i])
  try {
    for await (const m of q) {
      seen.hear(m)
      if (m.type !== 'result') continue
      if (++i >= messages.length) { input.end(); continue }
      await between(i, q, seen)
      input.say(messages[i])
    }
  } catch (e) { seen.thrown = String(e?.message ?? e) }
  return seen
}

const permission = (answer) => {
  const asked = []
  const canUseTool = async (name, input, extra) => {
    asked.push({ name, input, suggestions: extra.suggestions, id: extra.toolUseID })
    return answer(name, input, extra, asked.length)
  }
  return { asked, canUseTool }
}
const allow = (name, input) => ({ behavior: 'allow', updatedInput: input })
const prompts = async function* (text) { yield { type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null, session_id: '' } }

const scenarios = {
  async turns() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['one', 'two'], { canUseTool }), asked }
  },
  async single() { return { seen: await ask('one', {}) } },
  async allow() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go'], { canUseTool }), asked }
  },
  async deny() {
    const { asked, canUseTool } = permission(() => ({ behavior: 'deny', message: 'not on a Sunday' }))
    return { seen: await talk(['go'], { canUseTool }), asked }
  },
  async denystop() {
    const { asked, canUseTool } = permission(() => ({ behavior: 'deny', message: 'stop it all', interrupt: true }))
    return { seen: await talk(['go'], { canUseTool }), asked }
  },
  async edited() {
    const { asked, canUseTool } = permission(() => ({ behavior: 'allow', updatedInput: { command: 'echo edited > made' } }))
    return { seen: await talk(['go'], { canUseTool }), asked }
  },
  async remembered() {
    const { asked, canUseTool } = permission((name, input, extra) => ({ behavior: 'allow', updatedInput: input, updatedPermissions: (extra.suggestions ?? []).map((s) => ({ ...s, destination: 'session' })) }))
    return { seen: await talk(['go', 'again'], { canUseTool }), asked }
  },
  async setmode() {
    const { asked, canUseTool } = permission((name, input) => ({ behavior: 'allow', updatedInput: input, updatedPermissions: [{ type: 'setMode', mode: 'acceptEdits', destination: 'session' }] }))
    return { seen: await talk(['go', 'again'], { canUseTool }), asked }
  },
  async hooks() {
    const called = []
    const hook = (word) => async (input, id) => { called.push({ event: input.hook_event_name, tool: input.tool_name, id, prompt: input.prompt, session: input.session_id, response: input.tool_response !== undefined }); return word(input) }
    const { asked, canUseTool } = permission(allow)
    const seen = await talk(['go'], {
      canUseTool,
      hooks: {
        PreToolUse: [{ matcher: 'Bash', hooks: [hook((i) => i.tool_input.command.includes('forbidden')
          ? { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'the hook forbids it' } }
          : { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow', permissionDecisionReason: 'the hook allows it' } })] },
        { matcher: 'NoSuchTool', hooks: [hook(() => ({}))] }],
        PostToolUse: [{ hooks: [hook(() => ({ hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: 'the hook adds this' } }))] }],
        UserPromptSubmit: [{ hooks: [hook(() => ({ hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'context of the hook' } }))] }],
        Stop: [{ hooks: [hook(() => ({}))] }],
      },
    })
    return { seen, called, asked }
  },
  async server() {
    const got = []
    const weather = createSdkMcpServer({ name: 'weather', version: '1.0.0', tools: [tool('forecast', 'The weather of a city', { city: z.string() }, async ({ city }) => { got.push(city); return { content: [{ type: 'text', text: `rain in ${city}` }] } })] })
    let status
    const seen = await talk(['go', 'on'], { mcpServers: { weather }, allowedTools: ['mcp__weather__forecast'] }, async (i, q) => { status = await q.mcpServerStatus() })
    return { seen, got, status }
  },
  async agents() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go'], { canUseTool, agents: { scout: { description: 'Looks around', prompt: 'You are a scout of the mountains.', tools: ['Read'] } } }), asked }
  },
  async images() {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    return { seen: await talk([[{ type: 'text', text: 'what is this' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }]], {}) }
  },
  async schema() {
    return { seen: await talk(['go'], { outputFormat: { type: 'json_schema', schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false } } }) }
  },
  async schemanever() {
    return { seen: await talk(['go'], { outputFormat: { type: 'json_schema', schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false } } }) }
  },
  async budget() { return { seen: await talk(['go'], { maxBudgetUsd: 0.0001, permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }) } },
  async maxturns() { return { seen: await talk(['go'], { maxTurns: 1, permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }) } },
  async interrupt() { // the model stalls in the middle of both answers
    const seen = watch()
    const input = inputs()
    const q = query({ prompt: input, options: base({ includePartialMessages: true }) })
    input.say('stall')
    let answer = null
    let before = -1
    try {
      for await (const m of q) {
        seen.hear(m)
        if (m.type === 'stream_event' && m.event.type === 'content_block_delta' && before < seen.results.length) { before = seen.results.length; answer = await q.interrupt() }
        if (m.type === 'result') { if (seen.results.length === 1) input.say('go on'); else input.end() }
      }
    } catch (e) { seen.thrown = String(e?.message ?? e) }
    return { seen, answer }
  },
  async steer() { // the command runs until there is a file
    const seen = watch()
    const input = inputs()
    const q = query({ prompt: input, options: base({ permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }) })
    let said = false
    input.say('dig')
    try {
      for await (const m of q) {
        seen.hear(m)
        if (m.type === 'assistant' && m.message.content[0].type === 'tool_use' && !said) {
          said = true
          input.say('and mind the cat', { priority: 'next', uuid: '0c0c0c0c-1111-4222-8333-444444444444' })
          setTimeout(() => writeFileSync(WORK + '/go', ''), 1000)
        }
        if (m.type === 'result') input.end()
      }
    } catch (e) { seen.thrown = String(e?.message ?? e) }
    return { seen }
  },
  async withdrawn() {
    let aborted = false
    const { asked, canUseTool } = permission((name, input, extra) => new Promise((resolve) => {
      extra.signal.addEventListener('abort', () => { aborted = true; resolve({ behavior: 'deny', message: 'too late' }) })
      setTimeout(() => q.interrupt(), 50)
    }))
    const seen = watch()
    const input = inputs()
    const q = query({ prompt: input, options: base({ canUseTool }) })
    input.say('go')
    try {
      for await (const m of q) { seen.hear(m); if (m.type === 'result') input.end() }
    } catch (e) { seen.thrown = String(e?.message ?? e) }
    return { seen, asked, aborted }
  },
  async mode() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go', 'again'], { canUseTool }, async (i, q) => { await q.setPermissionMode('acceptEdits') }), asked }
  },
  async model() {
    return { seen: await talk(['one', 'two'], { model: 'claude-opus-4-5' }, async (i, q) => { await q.setModel('claude-sonnet-4-5') }) }
  },
  async resume() {
    const first = await ask(prompts('first words'), {})
    const id = first.sessions[0]
    const second = await ask(prompts('second words'), { resume: id })
    const fork = await ask(prompts('third words'), { resume: id, forkSession: true })
    const continued = await ask(prompts('fourth words'), { continue: true })
    return { first, second, fork, continued }
  },
  async unknown() { return { seen: await ask(prompts('hello'), { resume: '0b0b0b0b-1111-4222-8333-444444444444' }) } },
  async session() { return { seen: await ask(prompts('hello'), { sessionId: '0a0a0a0a-1111-4222-8333-444444444444' }) } },
  async partial() { return { seen: await talk(['go'], { includePartialMessages: true, permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }) } },
  async allowed() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go'], { canUseTool, allowedTools: ['Bash(touch:*)'], disallowedTools: ['Write', 'WebFetch'] }), asked }
  },
  async bypass() { return { seen: await talk(['go'], { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }) } },
  async plan() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go'], { canUseTool, permissionMode: 'plan' }), asked }
  },
  async dontask() { return { seen: await talk(['go'], { permissionMode: 'dontAsk' }) } },
  async prompts() {
    return {
      replaced: await ask(prompts('hello'), { systemPrompt: 'You are a lighthouse.' }),
      appended: await ask(prompts('hello'), { systemPrompt: { type: 'preset', preset: 'claude_code', append: 'Never mention whales.' } }),
    }
  },
  async dirs() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go'], { canUseTool, additionalDirectories: [process.env.BESIDE], permissionMode: 'acceptEdits' }), asked }
  },
  async info() {
    const input = inputs()
    const q = query({ prompt: input, options: base({}) })
    const out = { init: await q.initializationResult(), commands: await q.supportedCommands(), models: await q.supportedModels(), account: await q.accountInfo(), mcp: await q.mcpServerStatus() }
    try { await q.setMaxThinkingTokens(1000); out.thinking = 'taken' } catch (e) { out.thinking = String(e.message) }
    try { await q.rewindFiles('00000000-0000-4000-8000-000000000000'); out.rewind = 'taken' } catch (e) { out.rewind = String(e.message) }
    input.say('hello')
    const seen = watch()
    for await (const m of q) { seen.hear(m); if (m.type === 'result') input.end() }
    return { ...out, seen }
  },
  async mcpfile() {
    return { seen: await talk(['go'], { mcpServers: { tide: { type: 'stdio', command: process.env.MCP, args: ['serve-mcp'] } }, strictMcpConfig: true, allowedTools: ['mcp__tide'] }) }
  },
  async settings() {
    const { asked, canUseTool } = permission(allow)
    return { seen: await talk(['go'], { canUseTool, settings: JSON.stringify({ permissions: { deny: ['Bash(touch:*)'], allow: ['Bash(mkdir:*)'] } }) }), asked }
  },
}

const out = await scenarios[process.argv[2]]()
out.stderr = stderr.join('')
process.stdout.write(JSON.stringify(out) + '\n', () => process.exit(0))
