package tool

import . "os"

var _ = DevNull
