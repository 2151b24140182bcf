package agent

// Login is what variables and files show of a login. The agent was not asked, so a login in a keychain is unknown, and
// so is whether a login is still valid.
type Login struct {
	There Tri
	By    string // the variable or the file of the login; empty: none
}

// LoginFinder is a Driver that knows where its agent keeps a login.
type LoginFinder interface {
	Login(Env) Login
}
