package policy

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxRate and maxBurst are far above what one replica serves; they catch a slip of the finger.
	maxRate  = 1_000_000
	maxBurst = 10_000_000

	// maxName bounds the names of tiers, rates and quotas, which travel in headers and in database rows.
	maxName = 64

	// MaxMarkup is in rupiah, far above what anybody adds to a price; it too catches a slip of the finger.
	MaxMarkup = 1_000_000_000
)

// checkData reads data.json and holds it against its shape:
//
//	{"tiers": {"<tier>": {"rate_per_second": n > 0, "burst": n >= 1, "per": "merchant|operation|key",
//	   "quotas": {"<quota>": {"limit": n >= 0}}, "request_log": {"successes": 0 <= n <= 1}}},
//	 "quotas": {"<quota>": {"operations": ["/path"], "limit": n >= 0}},
//	 "amounts": {"<path or kind>": {"min": n >= 1, "max": n >= 1}},
//	 "markups": {"tiers": {"<tier>": n >= 0}, "products": {"<product>": n >= 0}},
//	 "transfers": {"tiers": {"<tier>": {"day": {"amount": n >= 0, "count": n >= 0}, "destination_day": {...},
//	   "repeat_within": "10m", "higher_fees": false}}},
//	 "custom": {...}}
//
// Only "tiers" must be there. "custom" belongs to an operator's own rules and is not looked at. Any other name is refused,
// so that a misspelt one never silently limits nothing.
func checkData(src []byte) (map[string]any, []Problem) {
	file, root := readJSON(dataFile, src)
	if root == nil {
		return nil, file.problems
	}
	s := shape{file}
	top := s.object(root, "tiers", "quotas", "amounts", "markups", "transfers", "custom")
	var quotas map[string]*node
	if declared := top["quotas"]; declared != nil {
		quotas = s.named(declared)
		for _, quota := range quotas {
			s.quota(quota)
		}
	}
	if tiers := top["tiers"]; tiers == nil {
		file.problem(root.offset, `"tiers" is missing`)
	} else {
		s.tiers(tiers, quotas)
	}
	if amounts := top["amounts"]; amounts != nil {
		for _, bounds := range s.any(amounts) {
			s.bounds(bounds)
		}
	}
	if markups := top["markups"]; markups != nil {
		s.markups(markups, top["tiers"])
	}
	if transfers := top["transfers"]; transfers != nil {
		s.transfers(transfers, top["tiers"])
	}
	if custom := top["custom"]; custom != nil {
		s.any(custom)
	}
	if len(file.problems) > 0 {
		return nil, file.problems
	}
	data, _ := root.plain().(map[string]any)
	return data, nil
}

// shape notes where a file differs from what it must be.
type shape struct{ *jsonFile }

// any is an object with whatever names.
func (s shape) any(n *node) map[string]*node {
	members, ok := n.value.([]member)
	if !ok {
		s.problem(n.offset, "this must be an object")
		return nil
	}
	object := make(map[string]*node, len(members))
	for _, m := range members {
		object[m.name] = m.value
	}
	return object
}

// object is an object that knows its names.
func (s shape) object(n *node, names ...string) map[string]*node {
	object := s.any(n)
	if object == nil {
		return nil
	}
	for _, m := range n.value.([]member) {
		if !slices.Contains(names, m.name) {
			s.problem(m.offset, "%q is not known here; known are %s", m.name, strings.Join(names, ", "))
		}
	}
	return object
}

// named is an object whose names an operator chooses.
func (s shape) named(n *node) map[string]*node {
	object := s.any(n)
	if object == nil {
		return nil
	}
	for _, m := range n.value.([]member) {
		if !validName(m.name) {
			s.problem(m.offset, "%q is not a name; use letters, digits, '_', '-' and '.', at most %d", m.name, maxName)
		}
	}
	return object
}

// tiers checks every tier. Where quotas are declared, a tier may only limit those.
func (s shape) tiers(n *node, quotas map[string]*node) {
	tiers := s.named(n)
	if tiers != nil && len(tiers) == 0 {
		s.problem(n.offset, "there must be a tier")
	}
	for _, tier := range tiers {
		fields := s.object(tier, "rate_per_second", "burst", "per", "quotas", "request_log")
		if fields == nil {
			continue
		}
		s.rate(tier, fields["rate_per_second"])
		s.whole(tier, "burst", fields["burst"], 1, maxBurst)
		if per := fields["per"]; per != nil {
			if text, _ := per.value.(string); !validPer(text) {
				s.problem(per.offset, perMust)
			}
		}
		if limited := fields["quotas"]; limited != nil {
			s.tierQuotas(limited, quotas)
		}
		if logged := fields["request_log"]; logged != nil {
			if share := s.object(logged, "successes")["successes"]; share != nil {
				s.share(share)
			}
		}
	}
}

// share checks a part of all.
func (s shape) share(n *node) {
	number, _ := n.value.(json.Number)
	if share, err := number.Float64(); err != nil || share < 0 || share > 1 {
		s.problem(n.offset, "must be a number from 0 to 1")
	}
}

// tierQuotas checks what a tier says about quotas.
func (s shape) tierQuotas(n *node, declared map[string]*node) {
	for _, quota := range s.named(n) {
		if fields := s.object(quota, "limit"); fields != nil {
			s.whole(quota, "limit", fields["limit"], 0, math.MaxInt64)
		}
	}
	members, _ := n.value.([]member)
	for _, m := range members {
		if declared != nil && declared[m.name] == nil {
			s.problem(m.offset, "no quota %q is declared in this file's \"quotas\"", m.name)
		}
	}
}

// quota checks the declaration of a quota: which paths it counts, and its size where a tier names none.
func (s shape) quota(n *node) {
	fields := s.object(n, "operations", "limit")
	if fields == nil {
		return
	}
	if limit := fields["limit"]; limit != nil {
		s.whole(n, "limit", limit, 0, math.MaxInt64)
	}
	operations := fields["operations"]
	if operations == nil {
		s.problem(n.offset, `"operations" is missing`)
		return
	}
	paths, ok := operations.value.([]*node)
	if !ok {
		s.problem(operations.offset, "this must be a list of paths")
	}
	for _, path := range paths {
		if text, ok := path.value.(string); !ok || !strings.HasPrefix(text, "/") {
			s.problem(path.offset, "this must be a path that begins with /")
		}
	}
}

// bounds checks the smallest and greatest amount of a path or a kind.
func (s shape) bounds(n *node) {
	fields := s.object(n, "min", "max")
	if fields == nil {
		return
	}
	least := int64(1)
	if low := fields["min"]; low != nil {
		least = s.whole(n, "min", low, 1, math.MaxInt64)
	}
	if high := fields["max"]; high != nil {
		most := s.whole(n, "max", high, 1, math.MaxInt64)
		if most > 0 && most < least {
			s.problem(high.offset, `"max" is below "min"`)
		}
	}
}

// markups checks what is added to prices. A tier that is not in the file would be a misspelt one.
func (s shape) markups(n, tiers *node) {
	s.merchants(n, "--markup")
	for group, amounts := range s.object(n, "tiers", "products", merchantsGroup) {
		names := s.any(amounts)
		for name, amount := range names {
			s.whole(amounts, name, amount, 0, MaxMarkup)
		}
		if _, empty := names[""]; empty {
			s.problem(amounts.offset, "a name is empty")
		}
		if group == "tiers" && tiers != nil {
			s.declaredTiers(amounts, tiers)
		}
	}
}

// merchantsGroup is where a merchant's own limits stood.
const merchantsGroup = "merchants"

// merchants refuses limits of single merchants: these are on the merchants' records, with who set them and why.
func (s shape) merchants(n *node, flags string) {
	members, _ := n.value.([]member)
	for _, m := range members {
		if m.name == merchantsGroup {
			s.problem(m.offset, "what is one merchant's own is on its record; take this out, and use gerbang merchant limit MERCHANT with %s; "+
				"deploy/README.md, Move merchants' limits out of data.json, has an order in which no limit is missing meanwhile", flags)
		}
	}
}

// transfers checks what bounds money out.
func (s shape) transfers(n, tiers *node) {
	s.merchants(n, "--day-amount, --day-count, --destination-amount, --destination-count or --repeat-within")
	for group, limited := range s.object(n, "tiers", merchantsGroup) {
		for _, limits := range s.any(limited) {
			s.transferLimits(limits)
		}
		if group == "tiers" && tiers != nil {
			s.declaredTiers(limited, tiers)
		}
	}
}

// transferLimits checks the bounds of a tier or a merchant.
func (s shape) transferLimits(n *node) {
	for name, value := range s.object(n, "day", "destination_day", "repeat_within", "higher_fees") {
		if name == "higher_fees" {
			if _, ok := value.value.(bool); !ok {
				s.problem(value.offset, "%q must be true or false", name)
			}
			continue
		}
		if name == "repeat_within" {
			text, _ := value.value.(string)
			if _, err := parseRepeat(text); err != nil {
				s.problem(value.offset, "%q %v", name, err)
			}
			continue
		}
		for unit, most := range s.object(value, "amount", "count") {
			s.whole(value, unit, most, 0, math.MaxInt64)
		}
	}
}

// declaredTiers notes the names of an object that are no tiers.
func (s shape) declaredTiers(n, tiers *node) {
	declared, _ := tiers.value.([]member)
	named, _ := n.value.([]member)
	for _, m := range named {
		if !slices.ContainsFunc(declared, func(tier member) bool { return tier.name == m.name }) {
			s.problem(m.offset, "no tier %q is in this file's \"tiers\"", m.name)
		}
	}
}

// rate checks a pace, which may be a fraction: 0.5 is one request in two seconds.
func (s shape) rate(parent, n *node) {
	if n == nil {
		s.problem(parent.offset, `"rate_per_second" is missing`)
		return
	}
	number, ok := n.value.(json.Number)
	value, err := strconv.ParseFloat(number.String(), 64)
	if !ok || err != nil || value <= 0 || value > maxRate {
		s.problem(n.offset, `"rate_per_second" must be a number above 0 and at most %d`, maxRate)
	}
}

// whole checks a whole number and answers it, or 0 where it is none.
func (s shape) whole(parent *node, name string, n *node, least, most int64) int64 {
	if n == nil {
		s.problem(parent.offset, "%q is missing", name)
		return 0
	}
	number, ok := n.value.(json.Number)
	value, err := strconv.ParseInt(number.String(), 10, 64)
	if !ok || err != nil || value < least || value > most {
		s.problem(n.offset, "%q must be a whole number from %d to %d", name, least, most)
		return 0
	}
	return value
}

// validName reports whether a tier, a rate or a quota may be called so.
func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !(c >= '0' && c <= '9') && !strings.ContainsRune("_-.", rune(c)) {
			return false
		}
	}
	return true
}
