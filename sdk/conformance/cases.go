package conformance

import (
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Case is one thing that a plugin is to prove.
type Case struct {
	Name string
	// Proves says what is known once the case has passed.
	Proves string
	// Alone says that nothing else may run meanwhile, because it orders what the
	// simulator does to the next call of anybody.
	Alone bool

	run func(*trial)
}

// exampleCase is proven for each example of a kind.
type exampleCase struct {
	name, proves string
	alone        bool
	run          func(*trial, Example)
}

var everywhere = []Case{
	{"manifest", "The process serves the manifest that lies beside it.", false, checkManifest},
	{"unknown operation", "An operation that the manifest does not have is not sent.", false, checkUnknownOperation},
	{"unknown reference", "A reference that nobody used is not found; asking makes nothing.", false, checkUnknownReference},
	{"accounts", "What is done with one merchant's credentials, in one mode, is what was ordered for that one.", false, checkAccounts},
	{"other merchants", "A merchant whose upstream does not answer holds up no other, nor its own other mode.", false, checkOthers},
	{"rotation", "New credentials are used from the first call that brings them, and old ones by calls that still have them.", false, checkRotation},
	{"revoked credentials", "Credentials that the upstream refuses are our account's fault: no refusal to the payer, and nothing is said not to exist.", false, checkRevoked},
	{"verify", "Credentials that work are usable; those that no longer do are not.", false, checkVerify},
	{"verify under faults", "A verification that goes wrong says neither that credentials work nor that they do not.", false, checkVerifyFaults},
	{"endless answers", "An answer without an end is not read into memory.", false, checkEndless},
	{"health", "The process answers the gateway while its upstream answers nothing.", false, checkHealth},
	{"leaks", "Memory, threads and descriptors do not grow with the number of calls.", false, checkLeaks},
	{"statements", "The statement has every payment once, whatever the size of a page, and of one account alone.", false, checkStatements},
	{"a statement read twice", "A cursor is worth the same to another process, and as often as it is read.", false, checkReadTwice},
	{"a foreign cursor", "What is no cursor never hides a payment.", false, checkForeignCursor},
	{"statements under faults", "A statement that can't be read is not said to have been read.", false, checkStatementFaults},
}

// ofCollections is for what no upstream knows before it is paid: there is
// nothing to go wrong there.
var ofCollections = []exampleCase{
	{"code", "A code is the same whenever it is made, and another for each amount and account.", false, checkCode},
	{"amounts", "Amounts beyond 2^31 and up to the largest are exact.", false, checkAmounts},
	{"send_by", "Nothing is sent after send_by.", false, checkSendBy},
}

var ofAccepted = []exampleCase{
	{"upstream errors", "An error of the upstream's own is told apart from a proxy's, also where it had acted.", true, checkOwnErrors},
	{"quote", "A price is answered as often as it is asked for, and nothing is bought by asking.", false, checkQuote},
	{"outcome", "What is accepted exists at the upstream once, exactly as ordered, and is found.", false, checkAccepted},
	{"twice", "A reference names one movement, however often it is called.", false, checkTwice},
	{"amounts", "Amounts beyond 2^31 and up to the largest are exact, or refused.", false, checkAmounts},
	{"send_by", "Nothing is sent after send_by.", false, checkSendBy},
	{"late preparation", "A call whose preparation takes too long is not sent after send_by.", false, checkLate},
	{"hang", "When its time is over the plugin itself says that it does not know.", false, checkHang},
	{"faults", "Whatever goes wrong with any request of a call, the plugin says only what it can know and whose fault it is, and never that the payer was refused.", false, checkFaults},
	{"lookup under faults", "A lookup that goes wrong is unknown: never not found, failed or done.", false, checkLookupFaults},
	{"echo", "What an upstream quotes of our credentials goes no further.", false, checkEcho},
	{"crash", "A new process knows what became of a call in which the old one was killed.", false, checkCrash},
	{"mutations", "A transfer stands in the account's mutations, also where its call was cut.", false, checkMutations},
	{"mutations under faults", "Mutations that can't be read to their end are not said to have been read.", false, checkMutationFaults},
	{"genuine notification", "A genuine notification is about its movement, says the same when it comes again, and a lookup agrees.", false, checkGenuine},
	{"forged notification", "A notification that is not genuine says nothing, and causes no request.", false, checkForged},
	{"returns", "Money of a payment that went back is told with its amount and its sort, once, and that it came again.", false, checkReturns},
	{"refunds", "A refund gives back what was ordered of a paid payment, once, never more than was paid, and is told as a return under its reference.", false, checkRefunds},
	{"refunds under faults", "Whatever goes wrong with a refund, it is not said to be refused, and a lookup knows what became of it.", false, checkRefundFaults},
	{"other amounts", "Where more or less was paid than asked for, what was paid is told.", false, checkOtherAmounts},
}

var ofEnds = []exampleCase{
	{"end", "An operation that ends a movement does so, and says the same again.", false, checkEnd},
	{"end under faults", "Whatever goes wrong, an end is told only where the movement has ended.", false, checkEndFaults},
	{"end of a paid one", "What is paid is not said to have ended unpaid.", false, checkEndPaid},
}

var ofQueries = []exampleCase{
	{"query", "The answer is as declared, and nothing moves.", false, checkQuery},
	{"query under faults", "A query that goes wrong answers no data and refuses nobody.", false, checkQueryFaults},
}

var ofDeclined = []exampleCase{
	{"declined", "What is refused, or not sent, leaves nothing behind, and stays so.", false, checkDeclined},
}

// Cases lists what the suite proves.
func (s *Suite) Cases() []Case {
	all := append([]Case{}, everywhere...)
	for _, e := range s.examples.Examples {
		op, _ := s.manifest.Operation(e.Operation)
		of := ofAccepted
		switch {
		case op.Kind == manifest.Refund:
			continue // a part of the payments' cases
		case e.Ends != "":
			of = ofEnds
		case !op.Money() && accepted(e.want()):
			of = ofQueries
		case !op.Money():
			of = ofQueries[:1]
		case !accepted(e.want()):
			of = ofDeclined
		case op.Kind == manifest.Collection:
			of = ofCollections
		}
		for _, c := range of {
			all = append(all, Case{e.Name + "/" + c.name, c.proves, c.alone, func(tr *trial) { c.run(tr, e) }})
		}
	}
	return all
}
