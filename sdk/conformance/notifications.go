package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// errNotPaid says that a movement ends without a payer.
var errNotPaid = errors.New("no payer pays this example: its result has neither payment_url nor qr_string")

// pay has a payer pay what a call was answered with: an amount of its own, or 0 for what
// is asked. It tells how much was paid.
func (tr *trial) pay(r sdk.Result, amount money.Amount) (money.Amount, error) {
	made := offerOf(r)
	if made == (offer{}) {
		return 0, &doorError{http.StatusNotFound, errNotPaid.Error()}
	}
	payment := map[string]any{"qr_string": made.QR}
	if made.QR == "" {
		payment = map[string]any{"url": made.URL}
	}
	if amount != 0 {
		payment["amount"] = amount
	}
	var receipt struct{ Amount money.Amount }
	err := tr.suite.simulator.order(tr.ctx, "pay", payment, &receipt)
	return receipt.Amount, err
}

// offer is what a payer is given.
type offer struct {
	URL string `json:"payment_url"`
	QR  string `json:"qr_string"`
}

func offerOf(r sdk.Result) (o offer) {
	if json.Unmarshal(r.Data, &o) != nil {
		return offer{}
	}
	return o
}

// payable reports whether a movement waits for a payer.
func payable(r sdk.Result) bool { return offerOf(r) != offer{} }

// settled makes a movement, lets it happen, and gives the first notification of it that
// the plugin understands as its success, and what it says. An amount other than 0 is
// what a payer pays.
func (tr *trial) settled(e Example, amount money.Amount) (o order, paid money.Amount, n sdk.Notification, ack sdk.Acknowledgement) {
	if !tr.manifest.Notifications {
		tr.Skip("this provider has no notifications")
	}
	if e.Unannounced {
		tr.Skip("the upstream does not announce this one")
	}
	a := tr.open("A", "test")
	o = tr.orderFor(e, a)
	seen := a.mail.count()
	r := tr.sendAccepted(o)
	paid, err := tr.pay(r, amount)
	if err != nil && amount != 0 {
		tr.unless(err, "let a payer pay another amount")
	}
	if err != nil && !unable(err) {
		tr.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	var heard []string
	for ; ; seen++ {
		if n, err = a.mail.next(ctx, seen); err != nil {
			tr.Fatalf("%v; the plugin said of those that came: %q", err, heard)
		}
		n.Connection, n.RequestID = a.Connection, uuid.NewString()
		ack = tr.notify(n)
		for _, u := range ack.Updates {
			if u.Reference == o.call.Reference && u.Status == sdk.StatusDone {
				return o, paid, n, ack
			}
		}
		heard = append(heard, fmt.Sprintf("%d %+v", ack.Status, ack.Updates))
	}
}

func (tr *trial) notify(n sdk.Notification) sdk.Acknowledgement {
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
	o, _, n, ack := tr.settled(e, 0)
	o.example.PayerFirst = false
	var event, channel string
	for range 2 {
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
		ack = tr.notify(n)
	}
	tr.mustExist(o)
	f := tr.find(o, "")
	tr.mustBeFound(o, f)
	if f.Status != sdk.StatusDone || f.EventID != event {
		tr.Errorf("a lookup says %v, event %q; the notification said that it is done, event %q", f.Status, f.EventID, event)
	}
	if f.Channel != channel {
		tr.Errorf("a lookup says it was paid by %q, the notification by %q", f.Channel, channel)
	}
}

// checkOtherAmounts: what was paid is what is told.
func checkOtherAmounts(tr *trial, e Example) {
	for _, more := range []money.Amount{1000, -1} {
		o, paid, _, ack := tr.settled(e, tr.amount(e)+more)
		if len(ack.Updates) != 1 || ack.Updates[0].Amount != paid {
			tr.Errorf("%d was paid of %d, and the notification is understood as %+v", paid, o.call.Amount, ack.Updates)
		}
		if f := tr.find(o, ""); f.Status != sdk.StatusDone || f.Amount != paid {
			tr.Errorf("%d was paid of %d, and a lookup finds %+v", paid, o.call.Amount, f)
		}
	}
}

// checkReturns: what went back of a payment is told by a lookup, with its amount, its sort
// and under one name, and the payment stays paid. A part goes back first, where the
// upstream knows parts, then the rest, where it takes more than once.
func checkReturns(tr *trial, e Example) {
	if op, _ := tr.manifest.Operation(e.Operation); op.Kind != manifest.Payment || len(tr.suite.examples.Returns) == 0 {
		tr.Skip("nothing of it goes back")
	}
	for _, sort := range tr.suite.examples.Returns {
		tr.checkReturn(e, sdk.ReturnSort(sort))
	}
}

func (tr *trial) checkReturn(e Example, sort sdk.ReturnSort) {
	o, paid, _, _ := tr.settled(e, 0)
	back := func(amount money.Amount, id string) (sdk.Return, error) {
		made := sdk.Return{Sort: sort}
		wanted := map[string]any{"reference": o.call.Reference, "sort": sort.String(), "amount": amount, "id": id}
		err := tr.suite.simulator.order(tr.ctx, "return", wanted, &made)
		return made, err
	}
	var made []sdk.Return
	part, err := back(paid/2, "")
	if err == nil {
		made = append(made, part)
		tr.mustBeReturned(o, made)
	} else if !unable(err) {
		tr.Fatal(err)
	}
	rest, err := back(0, "")
	if unable(err) && len(made) > 0 { // it goes back once: all of another payment, then
		o, _, _, _ = tr.settled(e, 0)
		made = nil
		rest, err = back(0, "")
	}
	if err != nil {
		tr.Fatalf("the simulator has no money of a payment go back by a %s: %v; \"returns\" of examples.json names the sorts that the upstream knows", sort, err)
	}
	made = append(made, rest)
	tr.mustBeReturned(o, made)
	tr.mustBeReturned(o, made)
	if rest.ID == "" {
		return
	}
	if _, err := back(0, rest.ID); err == nil {
		made[len(made)-1].Undone = true
		tr.mustBeReturned(o, made)
	} else if !unable(err) {
		tr.Fatal(err)
	}
}

// mustBeReturned looks a payment up that is paid, and of which this went back.
func (tr *trial) mustBeReturned(o order, want []sdk.Return) {
	f := tr.find(o, "")
	if f.Status != sdk.StatusDone {
		tr.Errorf("a payment of which money went back is %v, want done: what went back is told beside", f.Status)
	}
	if len(f.Returns) != len(want) {
		tr.Errorf("%d returns are told of %d: %+v", len(f.Returns), len(want), f.Returns)
		return
	}
	for _, w := range want {
		known := func(r sdk.Return) bool {
			return r.ID == w.ID && r.Amount == w.Amount && r.Sort == w.Sort && r.Undone == w.Undone
		}
		if !slices.ContainsFunc(f.Returns, known) {
			tr.Errorf("the %s %q of %d (undone: %t) is told as %+v", w.Sort, w.ID, w.Amount, w.Undone, f.Returns)
		}
	}
}

// signedBody stands for each member of a notification's body.
const signedBody = "body"

// checkForged alters a genuine notification in every way that whoever did not sign it
// could. What does not prove that it comes from the upstream for this account says
// nothing.
func checkForged(tr *trial, e Example) {
	_, _, genuine, _ := tr.settled(e, 0)
	account := tr.open("A", "test")
	forgeries := tr.forgeries(genuine)
	before := account.requests()
	for name, n := range forgeries {
		if ack := tr.notify(n); len(ack.Updates) != 0 || ack.Status < 400 || ack.Status > 499 {
			tr.Errorf("%s: got %+v, want no status update and a 4xx", name, ack)
		}
	}
	if n := account.requests() - before; n != 0 {
		tr.Errorf("%d requests reached the upstream because of notifications that were not genuine", n)
	}
}

func (tr *trial) forgeries(genuine sdk.Notification) map[string]sdk.Notification {
	forged := map[string]sdk.Notification{}
	add := func(name string, change func(*sdk.Notification)) {
		n := genuine
		n.Header = genuine.Header.Clone()
		change(&n)
		forged[name] = n
	}
	add("another merchant's", func(n *sdk.Notification) { n.Connection = tr.connect("B", "test").Connection })
	add("another mode's", func(n *sdk.Notification) { n.Connection = tr.connect("A", "live").Connection })
	add("with a broken body", func(n *sdk.Notification) { n.Body = []byte(`{"`) })
	add("without a body", func(n *sdk.Notification) { n.Body = nil })
	signed := tr.suite.examples.Signed
	if strings.HasPrefix(signed[0], "/") {
		add("with an empty object", func(n *sdk.Notification) { n.Body = []byte(`{}`) })
	} else {
		add("without headers", func(n *sdk.Notification) { n.Header = http.Header{} })
	}
	for _, part := range signed {
		switch {
		case part == signedBody || strings.HasPrefix(part, "/"):
			found := false
			for pointer, body := range alterations(genuine.Body) {
				if part == signedBody || pointer == part {
					found = true
					add("with another "+pointer, func(n *sdk.Notification) { n.Body = body })
				}
			}
			if !found {
				tr.Errorf("the notification has no %s, which the examples say is signed: %s", part, genuine.Body)
			}
		case genuine.Header.Get(part) == "":
			tr.Errorf("the notification has no header %s, which the examples say proves that it is genuine", part)
		default:
			text := genuine.Header.Get(part)
			add("without "+part, func(n *sdk.Notification) { n.Header.Del(part) })
			add("with an empty "+part, func(n *sdk.Notification) { n.Header.Set(part, "") })
			add("with another "+part, func(n *sdk.Notification) { n.Header.Set(part, middleAltered(text)) })
			add("with half of "+part, func(n *sdk.Notification) { n.Header.Set(part, text[:len(text)/2]) })
		}
	}
	return forged
}
