package console

import "maps"

// HandledRoutes are the routes under /admin/ that have a handler, and PermittedRoutes
// those that the table of roles knows.
func (c *Console) HandledRoutes() []string {
	routes := []string{"POST " + impactPath}
	for route := range maps.Keys(c.handlers()) {
		routes = append(routes, route)
	}
	return routes
}

func PermittedRoutes() []string {
	var routes []string
	for route := range maps.Keys(permissions) {
		routes = append(routes, route)
	}
	return routes
}

// MayUse is mayUse.
var MayUse = mayUse
