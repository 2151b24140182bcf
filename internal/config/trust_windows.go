package config

// exposed cannot be told from a mode here.
func exposed(string) string { return "" }
