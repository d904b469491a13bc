// Package admission owns the decision before the work: whether a key's scopes
// and its merchant's standing allow an operation, whether the policy allows
// this request, and whether the rate has a token left for it. It joins the
// policy, which decides, with the limiter, which counts. It must not know HTTP
// or SQL, and it spends nothing that would have to be given back.
package admission
