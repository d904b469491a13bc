package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Chart is a picture of numbers with axes, and with a table of the same numbers behind it.
// Its texts are in the visitor's language.
type Chart struct {
	Title, X, Y string
	Labels      []string // along the X axis
	Series      []Series
	Stacked     bool    // columns one upon the other; lines otherwise
	Whole       bool    // there is nothing between two whole numbers
	Decimals    int     // in the table
	Reach       float64 // how far the Y axis goes at least, such as 100 of percent
}

// Series is one of a chart's rows of numbers, of which NaN is none. Its tone is a class of
// the style sheet: good, bad, wait, or one of tone-1 to tone-5.
type Series struct {
	Name, Tone string
	Values     []float64
}

// The picture's size in its own units, and the space around what is drawn.
const (
	chartWidth, chartHeight = 400, 240
	chartLeft, chartRight   = 52, 8
	chartTop, chartBottom   = 26, 44
)

// Tick is a number or label at its place on an axis.
type Tick struct {
	At   float64
	Text string
}

// Column is a part of a stacked column.
type Column struct {
	X, Y, Width, Height float64
	Tone                string
}

// Line is a series' line between gaps.
type Line struct{ Points, Tone string }

// Dot is a number of a line that has no neighbour.
type Dot struct {
	X, Y float64
	Tone string
}

// Rows are the table: a label, and its numbers.
func (c Chart) Rows() [][]string {
	rows := make([][]string, len(c.Labels))
	for i, label := range c.Labels {
		rows[i] = []string{label}
		for _, s := range c.Series {
			rows[i] = append(rows[i], c.number(s.Values[i]))
		}
	}
	return rows
}

func (c Chart) number(n float64) string {
	if math.IsNaN(n) {
		return "\u2013"
	}
	if c.Decimals == 0 {
		return strings.TrimPrefix(signed(int64(math.Round(n))), "Rp")
	}
	return strconv.FormatFloat(n, 'f', c.Decimals, 64)
}

// Empty tells whether there is nothing to draw.
func (c Chart) Empty() bool { return c.greatest() == 0 }

func (c Chart) greatest() float64 {
	most := 0.0
	for i := range c.Labels {
		sum := 0.0
		for _, s := range c.Series {
			if n := s.Values[i]; math.IsNaN(n) {
				continue
			} else if c.Stacked {
				sum += n
			} else {
				sum = max(sum, n)
			}
		}
		most = max(most, sum)
	}
	return most
}

// mostTicks is how many ticks an axis has, beside the one at zero, and at most so many
// labels have space.
const mostTicks, mostLabels = 5, 5

// ticks are the round numbers of an axis from zero to at least the greatest.
func ticks(greatest float64, whole bool) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(max(greatest, 1e-6)/mostTicks)))
	for _, round := range []float64{1, 2, 5, 10} {
		if round*step*mostTicks >= greatest {
			step *= round
			break
		}
	}
	if whole || greatest == 0 {
		step = max(1, step)
	}
	all := []float64{0}
	for n := 1; all[n-1] < greatest || n == 1; n++ {
		all = append(all, math.Round(float64(n)*step*1e6)/1e6)
	}
	return all
}

// Picture is a chart as the layout draws it.
type Picture struct {
	Chart

	Across, Up             []Tick
	Columns                []Column
	Lines                  []Line
	Dots                   []Dot
	Width, Height          int
	Left, Right, Top, Foot float64
	Middle                 float64
}

// Drawn lays the chart out.
func (c Chart) Drawn() Picture {
	d := Picture{Chart: c, Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - chartRight, Top: chartTop, Foot: chartHeight - chartBottom}
	d.Middle = (d.Left + d.Right) / 2
	steps := ticks(max(c.Reach, c.greatest()), c.Whole)
	y := func(n float64) float64 { return d.Foot - (d.Foot-d.Top)*n/steps[len(steps)-1] }
	for _, n := range steps {
		text := strconv.FormatFloat(n, 'f', -1, 64)
		if n >= 1000 {
			text = strings.TrimPrefix(signed(int64(n)), "Rp")
		}
		d.Up = append(d.Up, Tick{y(n), text})
	}
	slot := (d.Right - d.Left) / float64(max(1, len(c.Labels)))
	every := (len(c.Labels) + mostLabels - 1) / mostLabels
	for i, label := range c.Labels {
		at := d.Left + slot*(float64(i)+.5)
		if i%every == 0 {
			d.Across = append(d.Across, Tick{at, label})
		}
		if !c.Stacked {
			continue
		}
		base := 0.0
		for _, s := range c.Series {
			if n := s.Values[i]; n > 0 {
				width := max(1, min(slot*.8, 48))
				d.Columns = append(d.Columns, Column{at - width/2, y(base + n), width, y(base) - y(base+n), s.Tone})
				base += n
			}
		}
	}
	if !c.Stacked {
		for _, s := range c.Series {
			d.line(s, slot, y)
		}
	}
	return d
}

// line draws a series, with a gap where there is no number.
func (d *Picture) line(s Series, slot float64, y func(float64) float64) {
	var points []string
	var last Dot
	end := func() {
		switch len(points) {
		case 0:
		case 1:
			d.Dots = append(d.Dots, last)
		default:
			d.Lines = append(d.Lines, Line{strings.Join(points, " "), s.Tone})
		}
		points = nil
	}
	for i, n := range s.Values {
		if math.IsNaN(n) {
			end()
			continue
		}
		last = Dot{d.Left + slot*(float64(i)+.5), y(n), s.Tone}
		points = append(points, fmt.Sprintf("%.1f,%.1f", last.X, last.Y))
	}
	end()
}
