package fault

// Code is the machine-readable error_code of the envelope. The set is closed
// and only ever added to.
type Code string

// The codes that a merchant can get. [Table] says when, and with which HTTP status.
const (
	AuthFailed           Code = "AUTH_FAILED"
	MerchantSuspended    Code = "MERCHANT_SUSPENDED"
	ScopeMissing         Code = "SCOPE_MISSING"
	PolicyDenied         Code = "POLICY_DENIED"
	InvalidRequest       Code = "INVALID_REQUEST"
	NotFound             Code = "NOT_FOUND"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	PayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	DuplicateReference   Code = "DUPLICATE_REFERENCE"
	DuplicateTransfer    Code = "DUPLICATE_TRANSFER"
	NoConnection         Code = "NO_CONNECTION"
	InProgress           Code = "IN_PROGRESS"
	InsufficientBalance  Code = "INSUFFICIENT_BALANCE"
	ProductUnavailable   Code = "PRODUCT_UNAVAILABLE"
	DestinationInvalid   Code = "DESTINATION_INVALID"
	ProviderRejected     Code = "PROVIDER_REJECTED"
	RateLimited          Code = "RATE_LIMITED"
	QuotaExceeded        Code = "QUOTA_EXCEEDED"
	ProviderUnavailable  Code = "PROVIDER_UNAVAILABLE"
	ProviderTimeout      Code = "PROVIDER_TIMEOUT"
	Internal             Code = "INTERNAL"
)

// Sent says whether the request reached the provider.
type Sent string

// Whether the provider got the request: it did not, it did and refused, or
// nobody knows yet.
const (
	SentNo      Sent = "no"
	SentRefused Sent = "refused"
	SentUnknown Sent = "unknown"
)

// Retry says what the merchant may do with the same reference.
type Retry string

// What the same reference may be used for next.
const (
	RetryNever       Retry = "never"
	RetryAfterChange Retry = "after_change"
	RetryLater       Retry = "later"
	RetryLookupFirst Retry = "lookup_first"
)

// Row is one code of the table: its HTTP status, the usual values of sent and
// retry, and the condition in a merchant's words.
type Row struct {
	Code   Code
	Status int
	Sent   Sent
	Retry  Retry
	When   string
}

// Table is every code in the order of the documentation. An [Error] starts with its
// row's Sent and Retry. Only errors of a case that the row's condition names
// separately change them.
var Table = []Row{
	{AuthFailed, 401, SentNo, RetryAfterChange, "The key is missing, malformed, of a wrong type, unknown, revoked, or not this merchant's."},
	{MerchantSuspended, 403, SentNo, RetryLater, "The key is right, but the merchant is stopped."},
	{ScopeMissing, 403, SentNo, RetryAfterChange, "This key may not do this, or not from this address."},
	{PolicyDenied, 403, SentNo, RetryAfterChange, "A policy refused; the message is the policy's own reason."},
	{InvalidRequest, 400, SentNo, RetryAfterChange, "The request is not a JSON object, or a field is missing, unknown, of a wrong type or out of range; errors names each field."},
	{NotFound, 404, SentNo, RetryNever, "There is no such path, or no such payment, order or transfer of this merchant in this mode."},
	{MethodNotAllowed, 405, SentNo, RetryNever, "The path exists, but not with this method; the Allow header names those it has."},
	{UnsupportedMediaType, 415, SentNo, RetryAfterChange, "The body is not a JSON object and was declared as something else."},
	{PayloadTooLarge, 413, SentNo, RetryAfterChange, "The body is larger than 64 KiB."},
	{DuplicateReference, 409, SentNo, RetryNever, "The reference was used before with a different request; errors names the fields that differ."},
	{DuplicateTransfer, 409, SentNo, RetryAfterChange, "An equal transfer without a reference was made a moment ago; data names it. With an external_id it is another transfer."},
	{NoConnection, 422, SentNo, RetryAfterChange, "Nobody has connected the merchant to a provider for this in this mode; the message says who can."},
	{InProgress, 409, SentNo, RetryLater, "The same payment, collection or transfer is being created at this moment, or no free amount is left."},
	{InsufficientBalance, 402, SentNo, RetryLater, "The prepaid balance is too low."},
	{ProductUnavailable, 422, SentNo, RetryLater, "The product is switched off, or has no price that holds."},
	{DestinationInvalid, 422, SentRefused, RetryNever, "The provider refused the phone, account, meter or customer number. When it was only inquired, sent is no and retry is after_change."},
	{ProviderRejected, 422, SentRefused, RetryNever, "The provider refused for another reason that is the caller's to know. When it was only inquired, sent is no and retry is after_change."},
	{RateLimited, 429, SentNo, RetryLater, "Too many requests; Retry-After and the RateLimit fields say when to come back."},
	{QuotaExceeded, 429, SentNo, RetryLater, "The quota of this period is used up; retry_at is the period's end."},
	{ProviderUnavailable, 500, SentNo, RetryLater, "The provider is down or held, or our account with it has a fault. Nothing was sent."},
	{ProviderTimeout, 500, SentUnknown, RetryLookupFirst, "A read, or the creation of a payment, did not finish in time. The same reference again looks the first attempt up and never makes a second."},
	{Internal, 500, SentNo, RetryLater, "Anything else. When sent is unknown, retry is lookup_first."},
}

var byCode = func() map[Code]Row {
	rows := make(map[Code]Row, len(Table))
	for _, row := range Table {
		rows[row.Code] = row
	}
	return rows
}()

// RowOf returns the table's row of a code. A code that is not in the table is
// a programming fault and is answered as [Internal].
func RowOf(code Code) Row {
	if row, ok := byCode[code]; ok {
		return row
	}
	return byCode[Internal]
}
