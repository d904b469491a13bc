package trouble_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/trouble"
)

func TestSpell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		var s trouble.Spell
		ended, end := context.WithCancel(t.Context())
		end()
		s.Note(ended, log, "read", errors.New("ended"))
		for range 2 {
			s.Note(t.Context(), log, "read", nil)
			for range 100 { // within 99 seconds
				s.Note(t.Context(), log, "read", errors.New("away"))
				time.Sleep(time.Second)
			}
			s.Note(t.Context(), log, "read", nil)
		}
		once := "level=WARN msg=read failures=1 error=away\nlevel=WARN msg=read failures=61 error=away\nlevel=INFO msg=\"read: it works again\" failures=100 lasted=1m40s\n"
		if out.String() != once+once {
			t.Errorf("the log has\n%s", out.String())
		}
	})
}
