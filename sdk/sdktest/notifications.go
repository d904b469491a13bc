package sdktest

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// settled makes a movement, lets it happen, and gives the upstream's genuine
// notification of it.
func (tr *trial) settled(e Example) (order, sdk.Notification) {
	tr.Helper()
	if !tr.manifest.Notifications {
		tr.Skip("this provider has no notifications")
	}
	if e.Unannounced {
		tr.Skip("the upstream does not announce this one")
	}
	settler, ok := tr.upstream.(Settler)
	if !ok {
		tr.Fatal("the manifest has notifications, so the suite's upstream must be a Settler")
	}
	o := tr.order(e)
	tr.sendAccepted(o)
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	n, err := settler.Settle(ctx, o.call.Reference)
	if err != nil {
		tr.Fatal(err)
	}
	n.Connection, n.RequestID = o.call.Connection, uuid.NewString()
	return o, n
}

func (tr *trial) notify(n sdk.Notification) sdk.Acknowledgement {
	tr.Helper()
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	ack, err := tr.plugin.Notify(ctx, n)
	if err != nil {
		tr.Fatalf("the notification broke the transport: %v", err)
	}
	return ack
}

// checkGenuine: a genuine notification is about its movement, and says the same
// when it comes again; a lookup agrees.
func checkGenuine(tr *trial, e Example) {
	o, n := tr.settled(e)
	var event, channel string
	for range 2 {
		ack := tr.notify(n)
		if ack.Status < 200 || ack.Status > 299 || len(ack.Updates) != 1 {
			tr.Fatalf("got %+v, want one status update and a 2xx", ack)
		}
		f := ack.Updates[0]
		if f.Status != sdk.StatusDone || f.EventID == "" {
			tr.Errorf("found %+v, want it done, with an event id", f)
		}
		tr.mustBeFound(o, f)
		if event != "" && f.EventID != event {
			tr.Errorf("event id %q on a repeat of %q", f.EventID, event)
		}
		event, channel = f.EventID, f.Channel
	}
	f := tr.find(o, "")
	tr.mustBeFound(o, f)
	if f.Status != sdk.StatusDone || f.EventID != event {
		tr.Errorf("a lookup says %d, event %q; the notification said that it is done, event %q", f.Status, f.EventID, event)
	}
	if f.Channel != channel {
		tr.Errorf("a lookup says that it was paid by %q, the notification by %q", f.Channel, channel)
	}
}

// checkForged: anybody may send to a notification route. What does not prove
// that it comes from the upstream for this account says nothing.
func checkForged(tr *trial, e Example) {
	_, genuine := tr.settled(e)
	forge := func(change func(*sdk.Notification)) sdk.Notification {
		n := genuine
		n.Header = genuine.Header.Clone()
		change(&n)
		return n
	}
	forgeries := map[string]sdk.Notification{
		"another merchant's": forge(func(n *sdk.Notification) { n.Connection = tr.upstream.Connect("B", "test") }),
		"another mode's":     forge(func(n *sdk.Notification) { n.Connection = tr.upstream.Connect("A", "live") }),
		"without headers":    forge(func(n *sdk.Notification) { n.Header = http.Header{} }),
		"with a broken body": forge(func(n *sdk.Notification) { n.Body = []byte(`{"`) }),
		"without a body":     forge(func(n *sdk.Notification) { n.Body = nil }),
	}
	for name, n := range forgeries {
		if ack := tr.notify(n); len(ack.Updates) != 0 || ack.Status < 400 || ack.Status > 499 {
			tr.Errorf("%s: got %+v, want no status update and a 4xx", name, ack)
		}
	}
}
