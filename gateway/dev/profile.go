package dev

import (
	"context"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"
)

// longestProfile bounds a profile, of which there is one at a time.
const longestProfile = time.Minute

// profile answers with what the gateway's processor time goes to for so many seconds, as
// go tool pprof reads it. Only the development setting has it.
func profile(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.FormValue("seconds"))
	lasts := time.Duration(seconds) * time.Second
	if err != nil || lasts <= 0 || lasts > longestProfile {
		say(w, http.StatusBadRequest, "seconds must be 1 to 60")
		return
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		say(w, http.StatusConflict, err.Error())
		return
	}
	defer pprof.StopCPUProfile()
	ctx, cancel := context.WithTimeout(r.Context(), lasts)
	defer cancel()
	<-ctx.Done()
}
