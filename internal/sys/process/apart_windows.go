package process

// Apart returns nil: the job object of a child ends with us.
func Apart() error { return nil }
