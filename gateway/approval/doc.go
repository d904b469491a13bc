// Package approval decides which plugin binaries a gateway runs. It owns what operators have approved, which approval of each
// plugin is in force, the directory of binaries, and how a replica follows that word while it serves. What a process is, and
// how one takes another's place, is package host's: this one must not know HTTP, and it starts nothing by itself.
//
// A head is one row for each plugin. Whoever activates an approval has seen that every live replica has its file, and has
// tried it beside the one in use; then the head moves, and each replica replaces its own process, or says why it can't and
// goes on with what it has. A row without a valid MAC changes nothing.
package approval
