package sandbox

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

//go:embed room
var roomFiles embed.FS

var roomPage = template.Must(template.ParseFS(roomFiles, "room/page.html"))

// Telling is how an upstream tells of a payment.
type Telling int

const (
	// TellAsUsual is at once, unless the amount is a magic one.
	TellAsUsual Telling = iota
	// TellLate is LateGap after the payment.
	TellLate
	// TellNever leaves it to a look-up.
	TellNever
)

// LateGap is how late a notification comes that is told late.
const LateGap = 4 * time.Second

// Payment is what a room is about, as its upstream has it now.
type Payment struct {
	Merchant, Amount, Reference, Description, State, Expiry string
	// SuccessURL is where the merchant wants who has paid, "" for nowhere.
	SuccessURL string
	// Pending says that a payer is asked to pay it, Open that it can be paid and can fail.
	Pending, Open bool
	// Ended says that the upstream has something to notify of.
	Ended bool
	// Lookup is the operation by which the gateway asks for it.
	Lookup string

	// Pay and Fail are [*NotPayable] where its state does not allow it.
	Pay    func(Telling) error
	Fail   func() error
	Notify func() []Entry // of its latest state, once more
}

// Room is the page of each payment of a simulator: a payer pays on it, and people see and make what the upstream does.
type Room struct {
	env    *Env
	prefix string
	find   func(id string) (Payment, bool)
}

// NewRoom makes the pages, whose paths are a prefix and an id by which a payment is found. What [Activity.About] has under the
// same id is shown on its page.
func NewRoom(env *Env, prefix string, find func(id string) (Payment, bool)) *Room {
	return &Room{env, prefix, find}
}

// heard is how long an order waits for its notifications to be tried, so that
// the page that follows shows them.
const heard = 3 * time.Second

// maxOrder is the largest form of a room.
const maxOrder = 4 << 10

// Orders of a room.
const (
	orderPay    = "pay"
	orderLate   = "pay-late"
	orderLost   = "pay-lost"
	orderFail   = "fail"
	orderNotify = "notify"
	orderDelay  = "delay"
	orderDrop   = "drop"
)

// errOrder says that the form named none of the orders.
var errOrder = errors.New("the control room has no such order")

// roomButton is one order as the page offers it.
type roomButton struct{ Order, Label, Effect string }

// buttons are the orders that can be given now.
func (p Payment) buttons() []roomButton {
	var offered []roomButton
	if p.Open {
		offered = append(offered,
			roomButton{orderPay, "Pay", "and stay on this page"},
			roomButton{orderLate, "Pay, notify late", "the notification is delayed by 4 s"},
			roomButton{orderLost, "Pay, don't notify", "the notification is dropped: only a look-up finds out"},
			roomButton{orderFail, "Fail", "ends it unpaid"})
	}
	if p.Ended {
		offered = append(offered, roomButton{orderNotify, "Notify again", "sends its latest state once more"})
	}
	return append(offered,
		roomButton{orderDelay, "Delay a look-up", "the next " + p.Lookup + ", of any payment, waits 3 s"},
		roomButton{orderDrop, "Drop a look-up", "the next " + p.Lookup + ", of any payment, is cut off"})
}

// roomEvent is an event as a line of the page.
type roomEvent struct {
	Event

	Time   string // the time of the day
	Answer string
	Good   bool
}

func roomEvents(events []Event) []roomEvent {
	lines := make([]roomEvent, len(events))
	for n, e := range events {
		lines[n] = roomEvent{e, e.At.UTC().Format("15:04:05.000"), e.Reason, e.Status/100 == 2}
		if e.Status != 0 {
			lines[n].Answer = strconv.Itoa(e.Status) + " " + http.StatusText(e.Status)
		}
	}
	return lines
}

// Serve adds the pages, and what they load.
func (r *Room) Serve(mux *http.ServeMux) {
	for name, kind := range map[string]string{"page.css": "text/css", "room.js": "text/javascript"} {
		mux.HandleFunc("GET "+r.prefix+name, func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			http.ServeFileFS(w, request, roomFiles, "room/"+name)
		})
	}
	mux.HandleFunc("GET "+r.prefix+"{id}", r.found(r.show))
	mux.HandleFunc("GET "+r.prefix+"{id}/events.json", r.found(r.showEvents))
	// Another site's script must not be able to press a button.
	mux.Handle("POST "+r.prefix+"{id}", http.NewCrossOriginProtection().Handler(r.found(r.press)))
}

// found answers where the path names a payment.
func (r *Room) found(h func(http.ResponseWriter, *http.Request, Payment)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		p, ok := r.find(request.PathValue("id"))
		if !ok {
			http.NotFound(w, request)
			return
		}
		h(w, request, p)
	}
}

func (r *Room) show(w http.ResponseWriter, request *http.Request, p Payment) {
	id := request.PathValue("id")
	secure(w.Header(), p.SuccessURL)
	// The reader may be gone; nobody is left to answer.
	_ = roomPage.Execute(w, struct {
		Payment

		Self, Assets string
		Buttons      []roomButton
		Events       []roomEvent
	}{p, r.prefix + id, r.prefix, p.buttons(), roomEvents(r.env.Activity.About(id))})
}

// showEvents is what the page shows of the calls and notifications, for programs.
func (r *Room) showEvents(w http.ResponseWriter, request *http.Request, _ Payment) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(r.env.Activity.About(request.PathValue("id"))) // the reader may be gone
}

// press carries out what a button says. Without an order it is the payer's: it
// pays and goes on to where the merchant wants the payer.
func (r *Room) press(w http.ResponseWriter, request *http.Request, p Payment) {
	request.Body = http.MaxBytesReader(w, request.Body, maxOrder)
	order := request.PostFormValue("order")
	var err error
	if order == "" {
		err = p.Pay(TellAsUsual)
	} else {
		err = r.give(request.Context(), p, order)
	}
	_, refused := errors.AsType[*NotPayable](err)
	switch {
	case errors.Is(err, errOrder):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil && !refused:
		http.Error(w, "the sandbox failed", http.StatusInternalServerError)
	case order == "" && err == nil && p.SuccessURL != "":
		http.Redirect(w, request, p.SuccessURL, http.StatusSeeOther)
	default:
		// The page says what the state is, also when it was not to be paid.
		http.Redirect(w, request, r.prefix+request.PathValue("id"), http.StatusSeeOther)
	}
}

// give carries an order of the room out. What the state does not allow is
// not done; the page that follows shows the state.
func (r *Room) give(ctx context.Context, p Payment, order string) error {
	var err error
	switch order {
	case orderPay:
		err = p.Pay(TellAsUsual)
	case orderLate:
		err = p.Pay(TellLate)
	case orderLost:
		err = p.Pay(TellNever)
	case orderFail:
		err = p.Fail()
	case orderNotify:
		if p.Ended {
			err = r.env.Journal.Append(p.Notify()...).Wait()
		}
	case orderDelay:
		return r.env.Faults.Add(FaultLatency, p.Lookup, 1)
	case orderDrop:
		return r.env.Faults.Add(FaultDropBefore, p.Lookup, 1)
	default:
		return errOrder
	}
	if _, refused := errors.AsType[*NotPayable](err); err != nil && !refused {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, heard)
	defer cancel()
	r.env.Webhooks.Tried(waiting)
	return nil
}

// secure sets the headers of a page that loads its own style and script alone. The
// form's target includes where the answer redirects to: browsers check that.
func secure(header http.Header, successURL string) {
	target := ""
	// A host may legally hold what would begin another directive.
	if u, err := url.Parse(successURL); err == nil && u.Host != "" && !strings.ContainsAny(u.Host, ";, '\"") {
		target = " " + u.Scheme + "://" + u.Host
	}
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'"+target+
		"; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}
