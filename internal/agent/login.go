package agent

// Login is what variables and files tell of a login. Nobody was asked, so what a keychain holds is not known, nor
// whether it still counts.
type Login struct {
	There Tri
	By    string // the variable or the file that tells; empty: nothing does
}

// LoginTeller is a Driver that knows where its agent keeps a login.
type LoginTeller interface {
	Login(Env) Login
}
