package policy

// number returns 0: there are no signals here.
func number(string) int { return 0 }
