package merchants

var words = map[string]string{}
