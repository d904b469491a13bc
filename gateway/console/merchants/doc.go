// Package merchants is the console of merchants' people: keys, movements with their whole
// history, what was refused, callbacks, balance, quotas, connections and members. It is a
// listener of its own. Every page is of one merchant in one mode, which stand in its path;
// what somebody may do there is read anew with each request.
//
// It changes nothing by itself: it acts through the admin API within the process, as the
// person whose session it is and for that merchant alone, so that checks and audit are the
// same as operators'. It shows no provider's cost or margin, and nothing that operators
// have noted.
package merchants
