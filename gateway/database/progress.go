package database

import (
	"fmt"
	"time"
)

const (
	progressAfter = time.Second
	progressEvery = 5 * time.Second
)

// awaiting reports a wait to Progress after a second, and again every few seconds, until the function it returns is
// called. No call to Progress happens after that.
func (o Options) awaiting(what string) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(gone)
		timer := time.NewTimer(progressAfter)
		defer timer.Stop()
		for {
			select {
			case <-quit:
				return
			case <-timer.C:
				o.Progress(fmt.Sprintf("%s (%d s)", what, int(time.Since(begin).Seconds())))
				timer.Reset(progressEvery)
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}
