package habits

import "broken/internal/cli/high"

const windows = high.Zero
