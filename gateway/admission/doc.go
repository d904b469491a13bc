// Package admission decides whether a request may run: whether the key's scopes and
// the merchant's status allow the operation, whether the policy allows the request,
// and whether rate and quota have room for it. It joins the policy, which decides,
// with the limiter and the quota batcher, which count. It must not know HTTP or SQL,
// nor what became of a request: the caller says when its quota is to be released.
package admission
