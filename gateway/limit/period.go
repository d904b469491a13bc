package limit

import "time"

// Period is a stretch of time in which a quota is counted, by the name that its
// counts stand under.
type Period struct {
	Name string
	End  time.Time // and the beginning of the next
}

// Month is the calendar month of a time, where it is read in the time's own
// location: "2026-11".
func Month(now time.Time) Period {
	year, month, _ := now.Date()
	return Period{Name: now.Format("2006-01"), End: time.Date(year, month+1, 1, 0, 0, 0, 0, now.Location())}
}
