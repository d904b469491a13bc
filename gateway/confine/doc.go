// Package confine starts a plugin's binary so that it reaches nothing but what an
// operator approved. It owns the launcher, the list of files every program needs,
// and the filters that the kernel enforces. It knows no provider and no wire, and
// must never decide whether a plugin is approved: whoever calls it names the
// digest.
//
// A plugin is started by this very program, in the form of a hidden subcommand:
// [Order.Command] runs it, [Launch] is it. The launcher copies the binary into
// memory while it hashes it, seals the copy, gives up what the plugin must not
// have, and becomes the plugin. Process id, standard output and environment are
// those that the host arranged.
package confine
