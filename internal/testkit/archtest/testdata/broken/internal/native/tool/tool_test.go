package tool

import "os"

var _, _ = os.ReadFile("a")
