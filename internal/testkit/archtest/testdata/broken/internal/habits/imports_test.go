package habits

import "broken/internal/high"

var _ = []int{high.Zero}

func init() {}
