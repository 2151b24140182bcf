package habits

func init() {}

type method struct{}

func (method) init() {}
