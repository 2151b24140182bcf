package process

// killGroupOf does nothing: the job of a child ends with its owner, so there are no orphans.
func killGroupOf(int) {}

// ancestors returns nothing: a process does not keep its parent's number for itself.
func ancestors() map[int]bool { return nil }
