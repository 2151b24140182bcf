package process

// CheckPIDNamespace returns nil: the job object of a child ends with us.
func CheckPIDNamespace() error { return nil }
