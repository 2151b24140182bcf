package run

import "time"

// began is when this process began.
var began = time.Now()
