package agent

// Login describes a login as far as variables and files show it. The agent is not started, so a login in a keychain is
// not found, and it is unknown whether a login is still valid.
type Login struct {
	There Tri
	By    string // the variable or the file of the login, if any
}

// Variable is the member of a fault's detail with the variable that the agent's own configuration names for its login.
const Variable = "variable"

// LoginFinder is a Driver that knows where its agent keeps a login.
type LoginFinder interface {
	Login(Env) Login
}
