package qrwallet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const (
	// maxFile is the largest report, in bytes.
	maxFile = 64 << 20
	// maxFiles is how many a directory may hold: the cursor names each.
	maxFiles = 5000
)

// source is where an account's reports are.
type source interface {
	// list returns the files, in the order of their names.
	list(ctx context.Context) ([]file, error)
}

// file is one report.
type file struct {
	name    string
	changed int64     // when it last was, 0 where nobody knows: such a file is always read
	size    int64     // in bytes
	until   time.Time // up to when it reports, zero where it does not say; never after it was written
	read    func() ([]byte, error)
}

// written is when a file was last changed as far as it is known, or else never:
// it may be in the middle of being written.
func (f file) written() time.Time {
	switch {
	case f.changed != 0:
		return time.Unix(0, f.changed)
	case f.until.IsZero():
		return time.Unix(1<<40, 0)
	}
	return f.until
}

// unreachable is the error of an upstream that could not be asked.
type unreachable struct{ error }

// limited is the error of an upstream that was asked too often.
type limited struct{ error }

func sourceOf(at reportsAt) (source, error) {
	switch {
	case (at.Directory == "") == (at.URL == ""):
		return nil, errors.New("reports: one of directory and url must be given")
	case at.Directory != "" && !filepath.IsAbs(at.Directory):
		return nil, errors.New("reports: the directory must be an absolute path")
	case at.Directory != "":
		return directory(at.Directory), nil
	}
	target, err := url.Parse(at.URL)
	if err != nil || target.Host == "" {
		return nil, errors.New("reports: the url can't be read")
	}
	if target.Scheme != "https" && (target.Scheme != "http" || !upstream.Loopback(target.Hostname())) {
		return nil, errors.New("reports: the url must be https")
	}
	return remote{url: target.String(), token: at.Token}, nil
}

// directory is one into which the wallet drops its reports.
type directory string

func (d directory) list(context.Context) ([]file, error) {
	entries, err := os.ReadDir(string(d)) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("the directory can't be read: %w", errors.Unwrap(err))
	}
	var files []file
	for _, entry := range entries {
		// What is still being written has, by custom, another name.
		if !strings.HasSuffix(entry.Name(), ".csv") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(string(d), entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // taken away meanwhile
		}
		if err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: is no file that can be read", entry.Name())
		}
		files = append(files, file{
			name: entry.Name(), changed: info.ModTime().UnixNano(), size: info.Size(), until: earlier(stampOf(entry.Name()), info.ModTime()),
			read: func() ([]byte, error) { return readWhole(filepath.Join(string(d), entry.Name())) },
		})
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("the directory has %d reports, more than %d: move those that were read elsewhere", len(files), maxFiles)
	}
	return files, nil
}

func readWhole(path string) ([]byte, error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: can't be read: %w", filepath.Base(path), errors.Unwrap(err))
	}
	defer opened.Close()
	return bounded(filepath.Base(path), opened)
}

func bounded(name string, from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, unreachable{fmt.Errorf("%s: %w", name, err)}
	}
	if len(body) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %d MiB", name, maxFile>>20)
	}
	return body, nil
}

// stampOf reads the time with which a name ends, as settlement-20260102T150405Z.csv.
func stampOf(name string) time.Time {
	name = strings.TrimSuffix(name, ".csv")
	at, err := time.Parse("20060102T150405Z", name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return time.Time{}
	}
	return at
}

// earlier is the first of two times, zero where the given one is. A file of
// an hour may have its name before the hour is over, and be added to in it: it
// knows nothing of what came after it was written.
func earlier(given, bound time.Time) time.Time {
	if given.After(bound) {
		return bound
	}
	return given
}

// remote is one document, the whole report up to now.
type remote struct{ url, token string }

// remoteName stands for the document in cursors and errors: its URL may hold a
// secret.
const remoteName = "report"

var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (r remote) list(ctx context.Context) ([]file, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, errors.New("the url can't be read")
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := client.Do(request)
	answered := time.Now()
	if err != nil {
		if cause, ok := errors.AsType[*url.Error](err); ok {
			err = cause.Err // the rest names the URL
		}
		return nil, unreachable{fmt.Errorf("the url does not answer: %w", err)}
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusTooManyRequests:
		return nil, limited{errors.New("the url answers 429")}
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, unreachable{fmt.Errorf("the url answers %d", response.StatusCode)}
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the url answers %d", response.StatusCode)
	}
	body, err := bounded(remoteName, response.Body)
	if err != nil {
		return nil, err
	}
	return []file{{
		name: remoteName, size: int64(len(body)), until: modified(response.Header, answered),
		read: func() ([]byte, error) { return body, nil },
	}}, nil
}

// modified is when a document was changed as its server says, zero where it does
// not, and by our clock where the server's is ahead of it.
func modified(of http.Header, now time.Time) time.Time {
	at, err := http.ParseTime(of.Get("Last-Modified"))
	if err != nil {
		return time.Time{}
	}
	if date, err := http.ParseTime(of.Get("Date")); err == nil {
		at = earlier(at, date)
		if ahead := date.Sub(now); ahead > 0 {
			at = at.Add(-ahead)
		}
	}
	return earlier(at, now)
}
