package modelserver

// ScriptText describes Script to people, for the help and the pages.
const ScriptText = `A script says what a model would, in a rehearsal: --rehearse --script FILE, or --rehearse=FILE where
no command is named. It is an array of steps in JSON; comments and trailing commas are allowed. An example:

  echo '[{"shell": "ls"}, {"say": "It said: ${result}"}]' > script.json
  omniagent run --rehearse --script script.json -p hello

A step does one of these:

  {"say": "text"}            says it; ${input} is the last message of the user,
                             ${input.length} its length, ${result} what the
                             last tool answered
  {"think": "text"}          thinks it, where the wire has that
  {"shell": "ls"}            calls the agent's own tool for it, as do:
  {"write": {"path": "p", "content": "c"}}
  {"read": "path"}
  {"web": "https://…"}
  {"search": "words"}
  {"ask": "question"}        asks the user
  {"call": {"name": "n", "input": {}}}
                             calls any tool
  {"calls": [ … ]}           several steps that call a tool, at once
  {"json": {}}               answers in the form that the request asks for
  {"error": 429}             fails: 400 to 599, or "context_full"; with
                             "message": "text" and "retry_after": 1
  {"decline": "text"}        declines, in the form of its API
  {"stall": "headers"}       falls silent there; also "start", "middle"
  {"cut": "middle"}          drops the connection there; also "headers",
                             "start", {"events": 3}, {"bytes": 100}

To a step may be added:

  "stall", "cut"             its answer breaks so
  "times": 2                 error, stall or cut: the third attempt succeeds
  "repeat": 1000             say or think: so often
  "usage": {"input": 1, "output": 2, "cached": 3}
                             the tokens; input are those from no cache
  "slow": {"first": "10s"}   nothing for so long; {"after": "10s"}: a silence
                             after the first piece; {"piece": "50ms"}, or
                             "50ms" alone: a pause before each piece;
                             {"byte": "1s"}: before each byte

{"steps": [ … ]} may stand in place of the array: with "slow" every answer is slowed, and with "toolless": true requests
without tools play the script too.

Where the agent offers no such tool, the answer says so and goes on. After the last step the model says Done., and an
empty script says ok. The script begins anew with each message of a chat. What a model would say in one answer comes in
one: of says without a call between them, "slow" of the first counts. Some agents try again for long after an error:
give --timeout too.
`
