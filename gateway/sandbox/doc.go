// Package sandbox lets merchants try everything in test mode without an account of their own at any provider: where there is
// none, it opens one at the provider's simulator, which ships in the plugin's own binary, and tells it what payers and the
// provider would do. It owns the simulators' processes, the ports at which plugins reach them, and the connections that it
// opened. It must never act for live mode, and shows nobody a page that a simulator made: who may see a merchant's test
// movements is for the consoles to say.
//
// A simulator begins with the first call that needs it, confined as its plugin is, on one replica: what it knows is in a
// directory there. Others send theirs to that one, where their configuration names it, and refuse such calls where it does not.
// Whatever a simulator calls itself, its URLs and credentials name it as PROVIDER.sandbox.invalid, the same for all replicas;
// each replica puts its own port in the place of that when a plugin is called.
package sandbox
