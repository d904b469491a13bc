package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// apiError is an error of the upstream, which either API writes in its own form.
type apiError struct {
	code    int
	message string
}

func (e *apiError) Error() string { return e.message }

func problem(code int, message string) error { return &apiError{code, message} }

// Errors that more than one endpoint gives.
var (
	errServer  = problem(http.StatusInternalServerError, "Sorry, we encountered internal server error. We will fix this soon.")
	errKey     = problem(http.StatusUnauthorized, "Unknown Merchant server_key/id")
	errUnknown = problem(http.StatusNotFound, "Transaction doesn't exist.")
	errEnded   = problem(http.StatusPreconditionFailed, "Transaction status cannot be updated.")
	errTaken   = problem(http.StatusNotAcceptable, "The request could not be completed due to a conflict with the current state of the target resource, please try again")

	// Of refunds.
	errDuplicate    = problem(http.StatusNotAcceptable, "Duplicate refund ID")
	errUnchangeable = problem(http.StatusPreconditionFailed, "Merchant cannot modify the status of the transaction")
	errAmount       = problem(http.StatusRequestURITooLong, "Refund request is rejected due to invalid amount") // 414
	errDenied       = problem(http.StatusAccepted, "Refund denied by the bank")
)

// isSnap tells the two APIs apart.
func isSnap(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/snap/") }

// fail renders an error; what is not the upstream's own is a server error.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	known, ok := errors.AsType[*apiError](err)
	switch {
	case !ok:
		fail(w, r, errServer)
	case isSnap(r) && errors.Is(err, errTaken):
		answer(w, http.StatusBadRequest, map[string][]string{"error_messages": {"transaction_details.order_id has already been taken"}})
	case isSnap(r):
		answer(w, known.code, map[string][]string{"error_messages": {known.message}})
	default:
		answer(w, known.code, map[string]string{"status_code": strconv.Itoa(known.code), "status_message": known.message, "id": newID()})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// The caller may be gone; nobody is left to answer.
	_ = json.NewEncoder(w).Encode(body)
}
