package edge

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// notify takes a provider's notification. Its token is judged before anything of its
// body is read: strangers get no memory. The answer is the plugin's and is sent
// after the commit. A fault before the commit is a 500, so that the provider sends
// the notification again.
func (x *exchange) notify(params httprouter.Params) {
	route, err := x.findRoute(tenants.Provider(params.ByName("provider")), tenants.NotifyToken(params.ByName("token")))
	if err != nil {
		x.fail(x.truthful(err))
		return
	}
	text, err := x.readNotification()
	defer x.giveBack()
	if err != nil {
		x.fail(x.truthful(err))
		return
	}
	acknowledgement, err := x.edge.Notifier.Notify(x.ctx, lifecycle.Notification{
		Route:     route,
		RequestID: x.id,
		Method:    x.request.Method,
		Query:     x.request.URL.RawQuery,
		Header:    x.request.Header,
		Body:      text,
	})
	if err != nil {
		x.fail(x.truthful(err))
		return
	}
	status := cmp.Or(acknowledgement.Status, http.StatusOK)
	if status < http.StatusOK || status > 599 {
		x.fail(x.truthful(fmt.Errorf("provider %s answered a notification with status %d", params.ByName("provider"), status)))
		return
	}
	header := x.Header()
	if acknowledgement.ContentType != "" {
		header.Set("Content-Type", acknowledgement.ContentType)
	}
	header.Set("Cache-Control", "no-store")
	// Should anybody open it in a browser, it does nothing there.
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Content-Length", strconv.Itoa(len(acknowledgement.Body)))
	if status >= http.StatusBadRequest {
		x.code = "REFUSED"
	}
	x.WriteHeader(status)
	_, _ = x.Write(acknowledgement.Body)
}

// findRoute finds who is notified at a token.
func (x *exchange) findRoute(provider tenants.Provider, token tenants.NotifyToken) (lifecycle.Route, error) {
	if !x.edge.Authenticator.RemembersRoute(provider, token) {
		done, err := x.queue(x.edge.strangers)
		if err != nil {
			return lifecycle.Route{}, err
		}
		defer done()
	}
	return x.edge.Notifier.RouteOf(x.ctx, provider, token)
}
