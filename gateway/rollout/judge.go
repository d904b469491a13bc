package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// verdict is what is to become of a proposal.
type verdict int

const (
	waits verdict = iota
	moves
	refuses
	withdraws
)

// judge decides a proposal from the answers to it and the replicas that live; detail
// names who refused it, or who was silent. Alone is the one replica that counts, zero
// where all do.
func judge(head store.PolicyHead, answers []store.PolicyAnswer, live []store.Replica, alone uuid.UUID, now time.Time) (v verdict, detail string) {
	names := map[uuid.UUID]string{}
	for _, r := range live {
		names[r.ID] = Name(r)
	}
	var refused []string
	compiled := map[uuid.UUID]bool{}
	for _, answer := range answers {
		if answer.Compiled {
			compiled[answer.Replica] = true
			continue
		}
		name := names[answer.Replica]
		if name == "" {
			name = answer.Replica.String()
		}
		refused = append(refused, name+": "+answer.Reason)
	}
	var silent []string
	for _, r := range live {
		if r.Told() && !compiled[r.ID] && (alone == uuid.Nil || r.ID == alone) {
			silent = append(silent, Name(r))
		}
	}
	slices.Sort(silent)
	age := now.Sub(head.ProposedAt)
	switch {
	case len(refused) > 0:
		return refuses, fitted("refused by " + strings.Join(refused, "; "))
	case age > store.ProposalLasts:
		return withdraws, "nobody decided within a minute"
	case len(compiled) == 0 || len(silent) > 0 && age < silentAfter:
		return waits, ""
	case len(silent) > 0:
		return moves, fitted(fmt.Sprintf("without an answer within %s: %s", silentAfter, strings.Join(silent, ", ")))
	}
	return moves, ""
}
