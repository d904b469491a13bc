// Package admission owns the decision before the work: whether a key's scopes
// and its merchant's standing allow an operation, whether the policy allows
// this request, and whether rate and quota have something left for it. It joins
// the policy, which decides, with the limiter and the counter, which count. It must
// not know HTTP or SQL, nor what became of a request: whoever runs it says whether
// its quota is to be released.
package admission
