package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tailSize   = 8   // lines kept to explain a start that failed
	lineRate   = 100 // lines a second that are logged of a process; the rest is counted
	volumeRate = 64 << 10
)

// output takes what a plugin writes and puts it into the gateway's log, a line
// at a time. go-plugin's own reader is not used: it panics, in our process, on
// a line like {"@message":1}.
type output struct {
	log     *slog.Logger
	secrets *secrets // nil for none

	mu        sync.Mutex
	second    time.Time // when the second began whose lines are counted
	lines     int
	volume    int // of them, in bytes
	leftOut   int
	panicking bool // a stack trace goes on
	tail      [tailSize][]byte
	ended     int // lines, ever; the last are in tail
}

// LogLines gives a writer that puts what a process writes into a log, a line at
// a time. Lines of hclog and slog in their JSON form keep level and attributes.
func LogLines(log *slog.Logger) io.Writer { return (&output{log: log}).stream() }

// stream gives a writer for one of the plugin's streams, so that the lines of
// one never mix with those of another.
func (o *output) stream() *lines { return &lines{out: o} }

type lines struct {
	out     *output
	partial []byte
	cut     bool // the rest of an overlong line is dropped
}

// Write never fails; the plugin is not to be stopped by its log.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte{'\n'})
		l.keep(line)
		if !found {
			return n, nil
		}
		if len(l.partial) > 0 {
			l.out.line(l.partial)
		}
		l.partial, l.cut, p = l.partial[:0], false, rest
	}
}

func (l *lines) keep(part []byte) {
	if l.cut {
		return
	}
	// Twice the line is kept, so that no secret is cut before it is recognised.
	if room := 2*maxText - len(l.partial); len(part) > room {
		part, l.cut = part[:room], true
	}
	l.partial = append(l.partial, part...)
}

// line takes a line. It allocates nothing for one that is left out.
func (o *output) line(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := &o.tail[o.ended%tailSize]
	*last = append((*last)[:0], text...)
	o.ended++
	if o.tooMany(len(text)) {
		return
	}
	level, message, attrs := o.parse(o.secrets.clean(string(text)))
	o.log.LogAttrs(context.Background(), level, message, attrs...)
}

// tooMany counts a line and says whether it is left out. What was left out is told
// when the second is over.
func (o *output) tooMany(size int) bool {
	if now := time.Now(); now.Sub(o.second) >= time.Second {
		o.second, o.lines, o.volume = now, 0, 0
	}
	o.lines, o.volume = o.lines+1, o.volume+min(size, maxText)
	if o.lines <= lineRate && o.volume <= volumeRate {
		return false
	}
	if o.leftOut++; o.leftOut == 1 {
		time.AfterFunc(time.Until(o.second.Add(time.Second)), o.tellLeftOut)
	}
	return true
}

func (o *output) tellLeftOut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log.Warn(strconv.Itoa(o.leftOut) + " lines left out")
	o.leftOut = 0
}

// last returns the plugin's last lines, for the error of a failed start.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var words []string
	for n := max(0, o.ended-tailSize); n < o.ended; n++ {
		_, message, _ := o.parse(o.secrets.clean(string(o.tail[n%tailSize])))
		words = append(words, message)
	}
	return strings.Join(words, "; ")
}

// parse reads a line of hclog or slog in their JSON form; any other is plain.
func (o *output) parse(text string) (slog.Level, string, []slog.Attr) {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return o.plain(text), text, nil
	}
	message, ok := take(fields, "@message", "msg")
	if !ok {
		return slog.LevelInfo, text, nil
	}
	level, _ := take(fields, "@level", "level")
	take(fields, "@timestamp", "time")
	take(fields, "@module")
	attrs := make([]slog.Attr, 0, len(fields))
	for key, value := range fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	return levelOf(level), message, attrs
}

// A stack trace begins with a line like the first ones, and goes on with those of
// goroutines, functions and files.
var (
	traceBegins = regexp.MustCompile(`^(panic: |fatal error: |goroutine \d+ )`)
	traceGoesOn = regexp.MustCompile(`^(\t|created by |\[signal |\[originating |\.\.\.)|^\S+\(.*\)$`)
)

func (o *output) plain(text string) slog.Level {
	o.panicking = traceBegins.MatchString(text) || o.panicking && traceGoesOn.MatchString(text)
	if o.panicking {
		return slog.LevelError
	}
	return slog.LevelInfo
}

func take(fields map[string]any, names ...string) (string, bool) {
	for _, name := range names {
		if text, ok := fields[name].(string); ok {
			delete(fields, name)
			return text, true
		}
	}
	return "", false
}

func levelOf(name string) slog.Level {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
