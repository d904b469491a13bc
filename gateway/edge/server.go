package edge

import (
	"log/slog"
	"net/http"
	"time"
)

// The limits of a connection. Bodies are small, and the longest operation answers
// well within the write timeout, so a slower client only holds a connection.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
)

// NewServer makes the server of a listener, the merchants' or a console's, ready to Serve. The log
// gets net/http's own messages (handshakes, broken requests) at debug level; nil is
// no log.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// OPTIONS * is answered in the envelope, as an unknown path is.
		DisableGeneralOptionsHandler: true,
	}
}
