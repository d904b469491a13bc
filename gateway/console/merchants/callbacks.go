package merchants

import (
	"net/url"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
)

// callbackStates are what the list of deliveries can be narrowed to.
var callbackStates = []string{"", "waiting", "delivered", "dead", "gone", "none"}

func (c *Console) callbacks(r *room) error {
	span, err := r.Span(c.config.Location)
	if err != nil {
		return err
	}
	filter := adminapi.CallbackFilter{Merchant: r.id(), Mode: string(r.Mode), State: r.Form("state"), Since: span.Since, Until: span.Until, After: span.After, Limit: pageOf}
	list, err := adminapi.ListCallbacks.Call(r.Request.Context(), r.admin, filter)
	if err != nil {
		return err
	}
	merchant, err := adminapi.ShowMerchant.Call(r.Request.Context(), r.admin, adminapi.MerchantID{Merchant: r.id()})
	if err != nil {
		return err
	}
	next := ""
	if len(list) == pageOf {
		last := list[pageOf-1]
		next = span.Older(r.Path("/callbacks"), map[string]string{"state": filter.State}, last.CreatedAt, last.EventID)
	}
	return r.Show("callbacks.html", r.T("Callbacks"), map[string]any{
		"Room": r, "Rows": list, "State": filter.State, "States": callbackStates, "Next": next, "Span": span, "Setup": setupOf(merchant, string(r.Mode)),
	})
}

func setupOf(m adminapi.Merchant, mode string) adminapi.CallbackSetup {
	if i := slices.IndexFunc(m.Callbacks, func(s adminapi.CallbackSetup) bool { return s.Mode == mode }); i >= 0 {
		return m.Callbacks[i]
	}
	return adminapi.CallbackSetup{Mode: mode}
}

func (c *Console) callback(r *room) error {
	callback, err := adminapi.ShowCallback.Call(r.Request.Context(), r.admin, adminapi.CallbackID{Merchant: r.id(), Mode: string(r.Mode), Event: r.Request.PathValue("event")})
	if err != nil {
		return err
	}
	return r.Show("callback.html", callback.Event, map[string]any{"Room": r, "C": callback, "Body": page.Pretty(callback.Body)})
}

func (c *Console) resend(r *room) error {
	event := r.Request.PathValue("event")
	if _, err := adminapi.ResendCallbacks.Call(r.Request.Context(), r.admin, adminapi.ResendOrder{Merchant: r.id(), Mode: string(r.Mode), EventID: event}); err != nil {
		return err
	}
	return r.Go(r.Path("/callbacks/"+url.PathEscape(event)), "It is sent again, under the same id. Reload the page to see what came of it.")
}

func (c *Console) testCallback(r *room) error {
	sent, err := adminapi.TestCallback.Call(r.Request.Context(), r.admin, adminapi.TestOrder{Merchant: r.id(), Mode: string(r.Mode), URL: r.Form("url")})
	if err != nil {
		return err
	}
	return r.Go(r.Path("/callbacks/"+sent.EventID), "A test callback is on its way. Reload the page to see what came of it.")
}

func (c *Console) setURL(r *room) error {
	if _, err := adminapi.SetCallbackURL.Call(r.Request.Context(), r.admin, adminapi.CallbackURL{Merchant: r.id(), Mode: string(r.Mode), URL: new(r.Form("url"))}); err != nil {
		return err
	}
	return r.Go(r.Path("/callbacks"), "The default URL is changed. A request that names a URL of its own keeps it.")
}

func (c *Console) changeSecret(r *room) error {
	changed, err := adminapi.ChangeCallbackSecret.Call(r.Request.Context(), r.admin, adminapi.SecretChange{Merchant: r.id(), Mode: string(r.Mode), Action: r.Form("action")})
	if err != nil {
		return err
	}
	if changed.CallbackSecret == "" {
		return r.Go(r.Path("/callbacks"), "Done.")
	}
	return r.Show("secret.html", r.T("The next callback secret"), map[string]any{
		"Room": r, "Secret": changed.CallbackSecret, "Back": r.Path("/callbacks"),
		"Text": "Add it to your server now: both secrets sign from this moment on. Switch once your server knows it, and finish when nothing uses the old one any more.",
	})
}
