package enclosure

// number is that of a signal's name; there are no signals here.
func number(string) int { return 0 }
