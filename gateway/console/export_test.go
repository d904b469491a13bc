package console

// HandledRoutes are the routes under /admin/ that the console answers.
func (c *Console) HandledRoutes() []string {
	var routes []string
	for route := range c.acts {
		routes = append(routes, route)
	}
	return routes
}

// UnpermittedRoutes are those that say nothing of an operator's role.
func (c *Console) UnpermittedRoutes() []string {
	var routes []string
	for route, act := range c.acts {
		if act.Takes == "" {
			routes = append(routes, route)
		}
	}
	return routes
}

// Needs is Identity.needs.
var Needs = Identity.needs
