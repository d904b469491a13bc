// Package page is what the consoles' pages are made with: templates in Indonesian and
// English, the files they need, sessions, signing in, and the rules that hold for every
// page. Each console is a site of its own, whose sessions are no good at the other one.
//
// A page is rendered here and enhanced by htmx: links and forms work without scripts, and
// with them a form that is refused keeps what was typed. Nothing is loaded from elsewhere,
// and no script or style stands in a page (a strict Content-Security-Policy). Changes come
// only by POST from the site itself (http.CrossOriginProtection). What needs a fresh
// code, needs one that is at most ten minutes old and is not the one somebody signed in
// with; the form that led there is found filled again, but for secrets.
//
// A session ends twelve hours after it began, and an hour after its visitor did the last
// thing: a page that renews itself does not count, and changes nothing of the session.
//
// It must not know what a console is about.
package page
