package adminapi

import "time"

// MostListValues is how many values one act on a list has at most.
const MostListValues = 1000

// The acts on lists.
var (
	ListLists      = Endpoint[None, []ListSize]{Act{Route: "GET /admin/lists", Takes: Read, Text: "List the lists that have entries."}}
	ShowList       = Endpoint[ListPage, []ListEntry]{Act{Route: "GET /admin/lists/{list}", Takes: Read, Text: "List the entries of a list, in no order that means anything."}}
	FindInList     = Endpoint[ListValues, []ListEntry]{Act{Route: "POST /admin/lists/{list}/find", Takes: Read, Large: true, Text: "Tell which values are on a list, and why. What is not on it is left out."}}
	AddToList      = Endpoint[NewListEntries, ListChanged]{Act{Route: "POST /admin/lists/{list}/entries", Takes: ChangePolicy, Large: true, Text: "Put values on a list, all or none, on every replica within a second."}}
	RemoveFromList = Endpoint[ListRemoval, ListChanged]{Act{Route: "POST /admin/lists/{list}/remove", Takes: ChangePolicy, Large: true, Text: "Take values off a list, all or none."}}
)

// ListSize is a list with how much it holds.
type ListSize struct {
	List    string    `json:"list"`
	Entries int64     `json:"entries"`
	Changed time.Time `json:"changed"`
	Unread  bool      `json:"unread,omitempty"` // no rule of the policy in force looks at it
}

// ListPage names entries of a list.
type ListPage struct {
	List  string `path:"list" json:"-" arg:"" help:"The list's name."`
	After string `query:"after" json:"-" help:"The id of an entry, for those behind it."`
	Limit int    `query:"limit" json:"-" default:"100" help:"How many at most, up to 1000."`
}

// ListValues are values to look for.
type ListValues struct {
	List   string   `path:"list" json:"-" arg:"" help:"The list's name."`
	Values []string `json:"values" arg:"" help:"Values, spelt in any way."`
}

// ListEntry is a value that is on a list. Nobody can read it back; Masked shows whether it is the right one.
type ListEntry struct {
	ID     string     `json:"id"`
	Masked string     `json:"masked"`
	Value  string     `json:"value,omitempty"` // as it was looked for
	Reason string     `json:"reason"`
	By     string     `json:"by"`
	Since  time.Time  `json:"since"`
	Until  *time.Time `json:"until,omitempty"` // for ever unless given
}

// NewListEntries are values for a list.
type NewListEntries struct {
	List    string         `path:"list" json:"-"`
	Entries []NewListEntry `json:"entries"`
	Reason  string         `json:"reason"` // of all that have none of their own
}

// NewListEntry is a value for a list.
type NewListEntry struct {
	Value  string     `json:"value"`
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// ListRemoval takes values off a list, by the values or by the ids of their entries.
type ListRemoval struct {
	List   string   `path:"list" json:"-" arg:"" help:"The list's name."`
	Values []string `json:"values,omitempty" arg:"" optional:"" help:"Values, spelt in any way."`
	IDs    []string `json:"ids,omitempty" name:"id" help:"The id of an entry, where nobody has its value."`
	Reason string   `json:"reason" required:"" help:"Why; kept in the audit of platform."`
}

// ListChanged is what became of an act on a list.
type ListChanged struct {
	List    string      `json:"list"`
	Entries []ListEntry `json:"entries"`          // that were put on it, or taken off
	Unread  bool        `json:"unread,omitempty"` // no rule of the policy in force looks at the list: it changes nothing
}
