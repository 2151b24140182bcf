package hermetic

import "time"

// Patience is how long a test waits for what has to come. It ends a test that hangs, and measures nothing: on a slow
// machine with other work a conversation takes minutes.
const Patience = 5 * time.Minute
