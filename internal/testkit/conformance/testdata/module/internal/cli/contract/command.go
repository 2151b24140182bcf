package contract

type Command struct {
	Network *Network
	Params  []Param
	inner
}

type Network struct{ Timeout int }

type Param struct{ Pattern, Secret string }

type inner struct{ Cache bool }
