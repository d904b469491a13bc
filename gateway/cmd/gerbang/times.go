package main

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// times reads all times and durations of the command line by one rule. What a time goes back from is now, and one without a zone is of the
// machine's.
func times(now time.Time) []kong.Option {
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Time](), decoding(func(text string) (any, error) { return readTime(text, now) })),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), decoding(func(text string) (any, error) { return readDuration(text) })),
	}
}

// decoding makes a mapper of what reads a text.
func decoding(read func(text string) (any, error)) kong.Mapper {
	return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("value", &text); err != nil {
			return err
		}
		value, err := read(text)
		if err == nil {
			target.Set(reflect.ValueOf(value))
		}
		return err
	})
}

// readTime reads a time, a day, which is its first moment, or how long ago something was.
func readTime(text string, now time.Time) (time.Time, error) {
	if ago, err := readDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago).UTC(), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q must be a time such as 2026-01-02T03:04:05Z or 2026-01-02T10:04:05+07:00, a day of this machine's zone such as 2026-01-02, "+
		"or how long ago it is, such as 90m, 24h or 7d", text)
}

var days = regexp.MustCompile(`^(\d{1,6})d`)

// readDuration reads what Go writes, and days before it: 7d, 1d12h, 90m.
func readDuration(text string) (time.Duration, error) {
	rest, whole := text, time.Duration(0)
	if found := days.FindStringSubmatch(text); found != nil {
		n, err := strconv.Atoi(found[1])
		if err != nil || n > 100*365 { // of what a duration can hold
			return 0, fmt.Errorf("%q must be a time of a hundred years at most", text)
		}
		rest, whole = text[len(found[0]):], time.Duration(n)*24*time.Hour
		if rest == "" {
			return whole, nil
		}
	}
	part, err := time.ParseDuration(rest)
	if err != nil || whole > 0 && part < 0 {
		return 0, fmt.Errorf("%q must be a time such as 90m, 24h or 7d", text)
	}
	return whole + part, nil
}
