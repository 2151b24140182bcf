package process

// killGroupOf does nothing: the job of a child ends with its owner, so there are no orphans.
func killGroupOf(int) {}
