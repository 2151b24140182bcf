package habits

import "broken/internal/high"

const windows = high.Zero
