package limit

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestAddressDoesNotFillTheQueue: of one address wait as many as like, and who comes from
// another has the next turn. Who leaves takes no place along.
func TestAddressDoesNotFillTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, read, reads := NewTurns(), make(chan struct{}), atomic.Int64{}
		ctx, hangUp := context.WithCancel(t.Context())
		wait := func(address string, turn func()) {
			done, err := s.Enter(ctx, netip.MustParseAddr(address))
			if err != nil {
				return
			}
			defer done()
			turn()
		}
		for range 600 {
			go wait("192.0.2.1", func() { <-read; reads.Add(1) })
		}
		synctest.Wait()
		after := int64(-1)
		go wait("192.0.2.2", func() { after = reads.Load() })
		for range 3 {
			synctest.Wait()
			read <- struct{}{}
		}
		synctest.Wait()
		if after < 0 || after > 2 {
			t.Errorf("another address had its turn after %d reads", after)
		}
		hangUp()
		close(read)
		synctest.Wait()
		if len(s.of) != 0 || len(s.turns) != 0 {
			t.Errorf("%d addresses and %d turns are kept", len(s.of), len(s.turns))
		}
	})
}
