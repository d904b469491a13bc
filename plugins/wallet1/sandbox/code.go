package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// service is a service's number in the standard: two digits.
type service string

// The services that are simulated.
const (
	serviceToken       service = "73"
	serviceBalance     service = "11"
	serviceHistory     service = "12"
	serviceInquiry     service = "37"
	serviceTopup       service = "38"
	serviceTopupStatus service = "39"
	serviceBankInquiry service = "42"
	serviceBank        service = "43"
	serviceBankStatus  service = "00"
)

// result is how a call ended, whatever the service: the HTTP status and the
// case, five digits together. With the service between them it is a response
// code.
type result string

// Results that the simulator gives by itself.
const (
	resultOK              result = "20000"
	resultPending         result = "20200"
	resultBad             result = "40000"
	resultFormat          result = "40001"
	resultMandatory       result = "40002"
	resultUnauthorized    result = "40100"
	resultToken           result = "40101"
	resultNoToken         result = "40103"
	resultLimit           result = "40302"
	resultDoNotHonor      result = "40305"
	resultFunds           result = "40314"
	resultNotPermitted    result = "40315"
	resultStatus          result = "40400"
	resultNotFound        result = "40401"
	resultBankUnknown     result = "40403"
	resultAmount          result = "40413"
	resultInconsistent    result = "40418"
	resultNotSupported    result = "40500"
	resultExternalID      result = "40900"
	resultReference       result = "40901"
	resultTooMany         result = "42900"
	resultGeneralError    result = "50000"
	resultInternalError   result = "50001"
	resultTimeout         result = "50400"
	resultInvalidMerchant result = "40408"
	resultInvalidAccount  result = "40411"
	resultFraud           result = "40303"
	resultInactive        result = "40318"
)

// messages are the standard's words for each result.
var messages = map[result]string{
	resultOK: "Successful", resultPending: "Request In Progress",
	resultBad: "Bad Request", resultFormat: "Invalid Field Format", resultMandatory: "Invalid Mandatory Field",
	resultUnauthorized: "Unauthorized.", resultToken: "Invalid Token (B2B)", "40102": "Invalid Customer Token",
	resultNoToken: "Token Not Found (B2B)", "40104": "Customer Token Not Found",
	"40300": "Transaction Expired", "40301": "Feature Not Allowed", resultLimit: "Exceeds Transaction Amount Limit",
	resultFraud: "Suspected Fraud", "40304": "Activity Count Limit Exceeded", resultDoNotHonor: "Do Not Honor",
	"40306": "Feature Not Allowed At This Time", "40307": "Card Blocked", "40308": "Card Expired",
	"40309": "Dormant Account", "40310": "Need To Set Token Limit", "40311": "OTP Blocked",
	"40312": "OTP Lifetime Expired", "40313": "OTP Sent To Cardholder", resultFunds: "Insufficient Funds",
	resultNotPermitted: "Transaction Not Permitted", "40316": "Suspend Transaction", "40317": "Token Limit Exceeded",
	resultInactive: "Inactive Card/Account/Customer", "40319": "Merchant Blacklisted", "40320": "Merchant Limit Exceed",
	"40321": "Set Limit Not Allowed", "40322": "Token Limit Invalid", "40323": "Account Limit Exceed",
	resultStatus: "Invalid Transaction Status", resultNotFound: "Transaction Not Found", "40402": "Invalid Routing",
	resultBankUnknown: "Bank Not Supported By Switch", "40404": "Transaction Cancelled",
	"40405": "Merchant Is Not Registered For Card Registration Services", "40406": "Need To Request OTP",
	"40407": "Journey Not Found", resultInvalidMerchant: "Invalid Merchant", "40409": "No Issuer",
	"40410": "Invalid API Transition", resultInvalidAccount: "Invalid Card/Account/Customer/Virtual Account",
	"40412": "Invalid Bill/Virtual Account", resultAmount: "Invalid Amount", "40414": "Paid Bill", "40415": "Invalid OTP",
	"40416": "Partner Not Found", "40417": "Invalid Terminal", resultInconsistent: "Inconsistent Request",
	"40419":            "Invalid Bill/Virtual Account",
	resultNotSupported: "Requested Function Is Not Supported", "40501": "Requested Operation Is Not Allowed",
	resultExternalID: "Conflict", resultReference: "Duplicate partnerReferenceNo",
	resultTooMany:      "Too Many Requests",
	resultGeneralError: "General Error", resultInternalError: "Internal Server Error", "50002": "External Server Error",
	resultTimeout: "Timeout",
}

// code is the response code of a result at a service.
func (r result) code(at service) string { return string(r[:3]) + string(at) + string(r[3:]) }

// status is the HTTP status.
func (r result) status() int {
	status, err := strconv.Atoi(string(r[:3]))
	if err != nil {
		return http.StatusInternalServerError
	}
	return status
}

// refusal is a call that was answered with an error and did nothing.
type refusal struct {
	result result
	detail string            // follows the message
	info   map[string]string // additionalInfo, where there is one
}

// Error returns the message.
func (r *refusal) Error() string {
	if r.detail == "" {
		return messages[r.result]
	}
	return messages[r.result] + " " + r.detail
}

func refuse(r result) error { return &refusal{result: r} }

func refuseFor(r result, detail string) error { return &refusal{result: r, detail: detail} }

// fields are an answer's, beside code and message.
type fields map[string]any

// fail renders an error; what is not the upstream's own is a general error.
func fail(w http.ResponseWriter, at service, err error) {
	var known *refusal
	if !errors.As(err, &known) {
		known = &refusal{result: resultGeneralError}
	}
	var body fields
	if known.info != nil {
		body = fields{"additionalInfo": known.info}
	}
	answer(w, at, known.result, known.Error(), body)
}

func answer(w http.ResponseWriter, at service, r result, message string, body fields) {
	if body == nil {
		body = fields{}
	}
	body["responseCode"], body["responseMessage"] = r.code(at), message
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status())
	// The caller may be gone; nobody is left to answer.
	_ = json.NewEncoder(w).Encode(body)
}
