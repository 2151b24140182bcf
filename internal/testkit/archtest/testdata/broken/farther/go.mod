module example.com/farther

go 1.26.0
