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

// tones are the colours of the words that merchants read.
var tones = map[string]string{
	"PAID": "good", "SUCCEEDED": "good", "Success": "good", "PENDING": "wait", "Pending": "wait", "FAILED": "bad", "Failed": "bad", "EXPIRED": "tone-5",
}

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
	days := make([]string, len(f.Spans))
	for i, span := range f.Spans {
		days[i] = v.Day(span.From)
	}
	chart := func(title, y string, stacked bool, series ...Series) Chart {
		return Chart{Title: v.T(title), X: v.T("Day of creation"), Y: v.T(y), Labels: days, Stacked: stacked, Whole: stacked, Series: series}
	}
	statuses := v.stacked(f, func(c adminapi.FigureCount) string { return c.Status }, "")
	for i, s := range statuses {
		statuses[i].Tone = cmp.Or(tones[s.Name], s.Tone)
	}
	channels := v.stacked(f, func(c adminapi.FigureCount) string {
		if tones[c.Status] != "good" {
			return ""
		}
		return cmp.Or(c.Channel, v.T("not told"))
	}, v.T("others"))
	rate, median, p95 := Series{Name: v.T("Success rate"), Tone: "good"}, Series{Name: v.T("Median"), Tone: "tone-1"}, Series{Name: v.T("95th percentile"), Tone: "tone-2"}
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
		m, p := math.NaN(), math.NaN()
		if span.Paid > 0 {
			m, p = float64(span.MedianSeconds), float64(span.P95Seconds)
		}
		median.Values, p95.Values = append(median.Values, m), append(p95.Values, p)
	}
	success := chart("Of those that have ended, how many succeeded", "Percent", false, rate)
	success.Decimals, success.Reach = 1, 100
	return []Chart{
		chart("By status", "Number", true, statuses...),
		chart("What succeeded, by channel", "Number", true, channels...),
		success,
		v.Seconds(chart("Time from creation to payment", "", false, median, p95)),
	}
}

// Seconds has a chart of seconds in the unit that its greatest number calls for.
func (v *Visit) Seconds(c Chart) Chart {
	per, unit := 1.0, "Seconds"
	switch most := c.greatest(); {
	case most >= 3*24*60*60:
		per, unit = 24*60*60, "Days"
	case most >= 3*60*60:
		per, unit = 60*60, "Hours"
	case most >= 3*60:
		per, unit = 60, "Minutes"
	}
	for _, s := range c.Series {
		for i := range s.Values {
			s.Values[i] /= per
		}
	}
	c.Y, c.Decimals = v.T(unit), 1
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
