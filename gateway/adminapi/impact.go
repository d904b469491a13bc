package adminapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// TryOnPast is answered line by line, so that Client.Impact calls it.
var TryOnPast = Act{Route: "POST /admin/policy/impact", Takes: ChangePolicy, Large: true, Text: "Try a policy, or a change of a merchant, on the past."}

// NewImpact is what is to be tried on the past: a policy by its version or its files, or a change of a merchant under the
// policy in force.
type NewImpact struct {
	Version  string            `json:"version,omitempty"`
	Files    map[string]string `json:"files,omitempty"`
	Merchant *MerchantTrial    `json:"merchant,omitempty"`
	// Recorded holds it against what was decided; else it is held against the policy in force.
	Recorded bool       `json:"recorded,omitempty"`
	Since    time.Time  `json:"since"`
	Until    *time.Time `json:"until,omitempty"` // now unless given
}

// MerchantTrial is a change of a merchant's record that nobody has made.
type MerchantTrial struct {
	MerchantID string     `json:"merchant_id"`
	Suspend    bool       `json:"suspend,omitempty"`
	Tier       string     `json:"tier,omitempty"`
	Limits     []NewLimit `json:"limits,omitempty"`
	Remove     string     `json:"remove,omitempty"` // the name of a limit
}

// Impact is what would have been decided otherwise.
type Impact struct {
	Version      string      `json:"version"`
	Against      string      `json:"against,omitempty"` // the version in force that it is held against; not given for what was decided
	Since        time.Time   `json:"since"`
	Until        time.Time   `json:"until"`
	Verdict      string      `json:"verdict"` // stricter, looser, mixed or equal
	Decisions    int64       `json:"decisions"`
	NewlyDenied  int64       `json:"newly_denied"`
	NewlyAllowed int64       `json:"newly_allowed"`
	Rupiah       int64       `json:"rupiah"` // of live requests alone
	Unknown      int64       `json:"unknown"`
	Live         ImpactSum   `json:"live"`
	Test         ImpactSum   `json:"test"`
	Rows         []ImpactRow `json:"rows"`
}

// ImpactSum is what changes in a mode.
type ImpactSum struct {
	NewlyDenied  int64 `json:"newly_denied"`
	NewlyAllowed int64 `json:"newly_allowed"`
	Unknown      int64 `json:"unknown"`
}

// ImpactRow is what changes for a merchant's operation by a rule, rate, quota or payout limit. What is unknown was not
// kept, and has no rule.
type ImpactRow struct {
	MerchantID   string    `json:"merchant_id" column:"MERCHANT"`
	MerchantName string    `json:"merchant_name" column:"NAME"`
	Mode         string    `json:"mode" column:"MODE"`
	Operation    string    `json:"operation" column:"OPERATION"`
	Rule         string    `json:"rule" column:"BY" otherwise:"-"`
	NewlyDenied  int64     `json:"newly_denied" column:"DENIED"`
	NewlyAllowed int64     `json:"newly_allowed" column:"ALLOWED"`
	Rupiah       int64     `json:"rupiah" column:"RUPIAH"`
	Unknown      int64     `json:"unknown" column:"UNKNOWN"`
	FirstAt      time.Time `json:"first_at" column:"FIRST"`
}

// ImpactProgress is how far a trial is.
type ImpactProgress struct {
	Decisions int64     `json:"decisions"`
	Of        int64     `json:"of"` // as far as they were counted
	At        time.Time `json:"at"`
}

// ImpactLine is a line of the answer to a trial: how far it is, and in the end what came of it.
type ImpactLine struct {
	Progress *ImpactProgress `json:"progress,omitempty"`
	Data     *Impact         `json:"data,omitempty"`
	Message  string          `json:"message,omitempty"` // of a failure
}

// Impact tries a policy, or a change of a merchant, on the past. It takes as long as it takes; progress is told on the
// way, where it is not nil.
func (c *Client) Impact(ctx context.Context, wanted NewImpact, progress func(ImpactProgress)) (Impact, error) {
	content, err := json.Marshal(wanted)
	if err != nil {
		return Impact{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/admin/policy/impact", bytes.NewReader(content))
	if err != nil {
		return Impact{}, err
	}
	c.identify(request)
	request.Header.Set("Content-Type", "application/json")
	patient := c.http
	patient.Timeout = 0
	response, err := patient.Do(request)
	if err != nil {
		return Impact{}, c.unreached(ctx, err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxImpact)
	for lines.Scan() {
		if response.StatusCode != http.StatusOK {
			return Impact{}, c.refused(response.StatusCode, lines.Bytes())
		}
		var line ImpactLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return Impact{}, fmt.Errorf("read the console's answer: %w", err)
		}
		switch {
		case line.Data != nil:
			return *line.Data, nil
		case line.Progress == nil:
			return Impact{}, errors.New(line.Message)
		case progress != nil:
			progress(*line.Progress)
		}
	}
	if err := lines.Err(); err != nil {
		return Impact{}, fmt.Errorf("read the console's answer: %w", err)
	}
	return Impact{}, errors.New("the console's answer ends before its result: ask again")
}

// maxImpact bounds a line of an answer.
const maxImpact = 256 << 20
