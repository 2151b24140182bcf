module broken

go 1.26.0

require (
	example.com/dep v0.0.0
	example.com/unlinked v0.0.0 // shows that a reason is enough
	example.com/farther v0.0.0 // indirect
)

replace (
	example.com/dep => ./linked
	example.com/unlinked => ./unlinked
	example.com/farther => ./farther
)
