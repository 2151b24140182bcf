package habits

import "broken/internal/cli/high"

var _ = []int{high.Zero}

func init() {}
