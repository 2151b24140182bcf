package cli

// executable is true: on Windows the extension decides, and find tries no others.
func executable(string) bool { return true }
