# pyte_lines.py is python3-pyte behind lines of JSON: see Emulator in emulator.go.
import base64
import json
import sys

import pyte

columns, rows = int(sys.argv[1]), int(sys.argv[2])
screen = pyte.HistoryScreen(columns, rows, history=1000000)
answer = []
screen.write_process_input = answer.append
stream = pyte.ByteStream(screen)


def text(line):
    return "".join(line[x].data for x in range(screen.columns)).rstrip()


for request in sys.stdin:
    request = json.loads(request)
    reply = {}
    if "write" in request:
        stream.feed(base64.b64decode(request["write"]))
        reply = {"answer": base64.b64encode("".join(answer).encode()).decode()}
        answer.clear()
    elif "resize" in request:
        screen.resize(request["resize"][1], request["resize"][0])
    else:
        shown = [row.rstrip() for row in screen.display]
        reply = {"lines": [text(line) for line in screen.history.top] + shown, "screen": shown,
                 "row": screen.cursor.y, "column": screen.cursor.x}
    print(json.dumps(reply), flush=True)
