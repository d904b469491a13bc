// Package harness starts the built program and plays everybody around it: the
// merchants and payers, the operator, the receivers of callbacks, the providers
// and a database server that can be cut off or killed. The stories beside it use
// it, one package each: payment, order, transfer, collection, callback, policy
// (rates, quotas and edits), replicas (of gerbang serve), providers (several, replaced, killed and failing),
// restore (from a backup), operations (gerbang dev, started, stopped and crashed) and faults (of provider,
// gateway and database).
//
// The program runs as processes of its own, and tests see no more of it than
// merchants, operators and the database do. Stories share one gerbang dev (Shared), each
// with merchants of its own (NewMerchant). Where something is killed, restored or counted
// in replicas, a test calls Start for a gerbang dev of its own, or NewDeployment for
// replicas of gerbang serve, and gets Programs. Program.Of and Program.Shop are a merchant
// in one mode, who asks for things and reads Answers.
//
// It is test support: no code of the gateway may import it, and it knows the
// gateway by its admin API, its error table and its store's tables only.
package harness
