package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/text"
)

// tones are the colours of states and of the words that merchants read.
var tones = func() map[string]string {
	all := map[string]string{}
	for tone, words := range map[string][]string{
		"good": {"PAID", "SUCCEEDED", "Success", "succeeded", "delivered", "posted", "active", "live", "closed", "done", "pushed", "in force", "verified"},
		"bad":  {"EXPIRED", "FAILED", "Failed", "failed", "dead", "expired", "returned", "suspended", "refused", "silent", "open", "down"},
		"wait": {"PENDING", "Pending", "pending", "acknowledged", "waiting", "submitting", "half-open", "proposed", "not_submitted"},
	} {
		for _, word := range words {
			all[word] = tone
		}
	}
	return all
}()

// Tone is the colour of a state, or of a word that merchants read: good, bad, wait or "".
func Tone(word any) string { return tones[fmt.Sprint(word)] }

// mostChannels is how many channels have a tone of their own.
const mostChannels = 4

// Day is a day as charts name it.
func (v *Visit) Day(at time.Time) string {
	return text.ShortDay(v.language, at.In(v.site.pages.location))
}

// Clock is a time of a day as charts name it.
func (v *Visit) Clock(at time.Time) string { return at.In(v.site.pages.location).Format("15:04:05") }

// FigureCharts draws what became of a merchant's movements by the days on which they were made.
func (v *Visit) FigureCharts(f adminapi.Figures) []Chart {
	channels := v.stacked(f, func(c adminapi.FigureCount) string {
		if tones[c.Status] != "good" {
			return ""
		}
		return cmp.Or(c.Channel, v.T("not told"))
	}, v.T("others"))
	rate := Series{Name: v.T("Success rate"), Tone: "good"}
	for _, span := range f.Spans {
		var good, ended float64
		for _, c := range span.Counts {
			switch tones[c.Status] {
			case "good":
				good, ended = good+float64(c.Count), ended+float64(c.Count)
			case "wait":
			default:
				ended += float64(c.Count)
			}
		}
		rate.Values = append(rate.Values, 100*good/ended) // of none it is none
	}
	success := v.byDay(f, "Of those that have ended, how many succeeded", "Percent", false, rate)
	success.Decimals, success.Reach = 1, 100
	return []Chart{
		v.byStatus(f, "By status"),
		v.byDay(f, "What succeeded, by channel", "Number", true, channels...),
		success,
		v.times(f, "Time from creation to payment"),
	}
}

// CallbackCharts draws what became of a merchant's callbacks.
func (v *Visit) CallbackCharts(f adminapi.Figures) []Chart {
	return []Chart{v.byStatus(f, "Callbacks by state"), v.times(f, "Time from a callback's event to its delivery")}
}

// byDay is a chart of figures by their days.
func (v *Visit) byDay(f adminapi.Figures, title, y string, stacked bool, series ...Series) Chart {
	c := Chart{Title: v.T(title), X: v.T("Day of creation"), Y: v.T(y), Stacked: stacked, Whole: stacked, Series: series}
	for _, span := range f.Spans {
		c.Labels = append(c.Labels, v.Day(span.From))
	}
	return c
}

func (v *Visit) byStatus(f adminapi.Figures, title string) Chart {
	series := v.stacked(f, func(c adminapi.FigureCount) string { return c.Status }, "")
	for i, s := range series {
		series[i].Tone, series[i].Name = cmp.Or(tones[s.Name], s.Tone), v.T(s.Name)
		if s.Name == "EXPIRED" { // told apart from FAILED, which is bad, too
			series[i].Tone = "tone-5"
		}
	}
	return v.byDay(f, title, "Number", true, series...)
}

// times is how long things took, in the unit that the greatest number calls for.
func (v *Visit) times(f adminapi.Figures, title string) Chart {
	median, p95 := Series{Name: v.T("Median"), Tone: "tone-1"}, Series{Name: v.T("95th percentile"), Tone: "tone-2"}
	for _, span := range f.Spans {
		m, p := math.NaN(), math.NaN()
		if span.Timed > 0 {
			m, p = float64(span.MedianMS), float64(span.P95MS)
		}
		median.Values, p95.Values = append(median.Values, m), append(p95.Values, p)
	}
	c := v.byDay(f, title, "Milliseconds", false, median, p95)
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"Days", 24 * time.Hour}, {"Hours", time.Hour}, {"Minutes", time.Minute}, {"Seconds", time.Second}} {
		if per := float64(unit.of.Milliseconds()); c.greatest() >= 3*per {
			for _, s := range c.Series {
				for i := range s.Values {
					s.Values[i] /= per
				}
			}
			c.Y, c.Decimals = v.T(unit.name), 1
			break
		}
	}
	return c
}

// stacked counts by a name ("" counts nothing), the most frequent first. Of many names the
// least frequent are one, where there is a name for them.
func (v *Visit) stacked(f adminapi.Figures, name func(adminapi.FigureCount) string, others string) []Series {
	sums := map[string]int64{}
	for _, span := range f.Spans {
		for _, c := range span.Counts {
			if n := name(c); n != "" {
				sums[n] += c.Count
			}
		}
	}
	var names []string
	for n := range sums {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	series := []Series{}
	at := map[string]int{}
	for i, n := range names {
		shown := n
		if others != "" && i >= mostChannels {
			i, shown = mostChannels, others
		}
		if at[n] = i; i == len(series) {
			series = append(series, Series{Name: shown, Tone: fmt.Sprintf("tone-%d", i%5+1), Values: make([]float64, len(f.Spans))})
		}
	}
	for i, span := range f.Spans {
		for _, c := range span.Counts {
			if n := name(c); n != "" {
				series[at[n]].Values[i] += float64(c.Count)
			}
		}
	}
	return series
}
