module example.com/unlinked

go 1.26.0
