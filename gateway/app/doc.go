// Package app wires the program: it builds the parts from a configuration, in the
// order in which they need one another, runs them under one context, and ends them
// in the opposite order. The layer test lives here too. It must hold no rule of its
// own: every decision belongs to the package that owns it.
package app
