package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
)

// apiError is an error body of the upstream.
type apiError struct {
	status  int
	Code    string       `json:"error_code"`
	Message string       `json:"message"`
	Errors  []fieldError `json:"errors,omitempty"`
}

// fieldError is one finding of the upstream's validator.
type fieldError struct {
	Field    []string `json:"field"`
	Location string   `json:"location"`
	Messages []string `json:"messages"`
	Types    []string `json:"types"`
}

// Error returns code and message.
func (e *apiError) Error() string { return e.Code + ": " + e.Message }

func problem(status int, code, message string) error {
	return &apiError{status: status, Code: code, Message: message}
}

// Errors that more than one endpoint gives.
var (
	errServer = problem(http.StatusInternalServerError, "SERVER_ERROR",
		"An unexpected error occurred, our team has been notified")
	errInvoiceNotFound = problem(http.StatusNotFound, "INVOICE_NOT_FOUND_ERROR", "Could not find invoice")
	errQRNotFound      = problem(http.StatusNotFound, "DATA_NOT_FOUND", "QR code not found")
	errRefundNotFound  = problem(http.StatusNotFound, "DATA_NOT_FOUND", "Refund not found")
	errRefundMaximum   = problem(http.StatusBadRequest, "MAXIMUM_REFUND_AMOUNT_REACHED",
		"Requested refund amount cannot exceed remaining unrefunded amount of the original payment")
	errRefundIneligible = problem(http.StatusForbidden, "INELIGIBLE_TRANSACTION",
		"Requested refund transaction cannot be processed as the transaction is not paid")
	errRefundDuplicate = problem(http.StatusConflict, "DUPLICATE_ERROR", "A refund with this reference_id exists already")
	errRefundKey       = problem(http.StatusConflict, "IDEMPOTENCY_ERROR", "This idempotency-key was used for another request")
	errKey             = problem(http.StatusUnauthorized, "INVALID_API_KEY", "API key format is invalid")
)

// validationError is the recorded shape of a refused request.
func validationError(findings ...fieldError) error {
	return &apiError{
		status: http.StatusBadRequest, Code: "API_VALIDATION_ERROR",
		Message: "Invalid input data. Please check your request", Errors: findings,
	}
}

// finding is one wrong field; the text follows the field's name in quotes.
func finding(location, field, text, kind string) fieldError {
	return fieldError{
		Field: []string{field}, Location: location, Messages: []string{`"` + field + `" ` + text}, Types: []string{kind},
	}
}

// fail renders an error; what is not the upstream's own is SERVER_ERROR.
func fail(w http.ResponseWriter, err error) {
	var known *apiError
	if !errors.As(err, &known) {
		fail(w, errServer)
		return
	}
	answer(w, known.status, known)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	// The caller may be gone; nobody is left to answer.
	_ = json.NewEncoder(w).Encode(body)
}
