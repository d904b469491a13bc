package merchants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// order is what simulators are told to pay: a code, or a page.
type order struct {
	QRString string `json:"qr_string,omitempty"`
	URL      string `json:"url,omitempty"`
}

// payable is how an open test movement is paid at its provider's simulator, nil where it can't be.
func (c *Console) payable(r *room, m movement.Movement) *order {
	if c.config.PayURL == "" || r.Mode != tenants.Test || m.State != movement.Pending {
		return nil
	}
	var answer struct {
		QRString    string `json:"qr_string"`
		CheckoutURL string `json:"checkout_url"`
		PaymentURL  string `json:"payment_url"`
	}
	_ = json.Unmarshal(m.Answer, &answer) // none, where nothing was answered yet
	switch {
	case answer.QRString != "":
		return &order{QRString: answer.QRString}
	case answer.CheckoutURL != "":
		return &order{URL: answer.CheckoutURL}
	case answer.PaymentURL != "":
		return &order{URL: answer.PaymentURL}
	}
	return nil
}

// pay pays a test movement as its payer would.
func (c *Console) pay(r *room) error {
	id, err := movement.ParseID(r.Request.PathValue("movement"))
	if err != nil {
		return tenants.ErrNotFound
	}
	m, err := c.own(r, id)
	if err != nil {
		return err
	}
	wanted := c.payable(r, m)
	if wanted == nil {
		return fault.New(fault.DuplicateReference, "There is nothing to pay any more.")
	}
	if err := c.payAt(r.Request.Context(), wanted); err != nil {
		return err
	}
	return r.Go(r.Path("/movements/"+id.String()), "It is paid at the simulator, which tells the gateway in a moment.")
}

// payWithin bounds a simulator's answer.
const payWithin = 10 * time.Second

func (c *Console) payAt(ctx context.Context, wanted *order) error {
	body, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.PayURL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: payWithin}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() // what it says is not needed
	switch {
	case response.StatusCode == http.StatusNotFound:
		return fault.New(fault.NotFound, "No simulator knows this payment: its provider is a real one.")
	case response.StatusCode >= http.StatusBadRequest:
		return errors.New(fmt.Sprint("merchants: the simulator answers ", response.Status))
	}
	return nil
}
