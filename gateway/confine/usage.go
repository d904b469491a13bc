package confine

// MaxThreads is how many threads a plugin may have.
const MaxThreads = 1024

// Usage is what a process has of the machine.
type Usage struct {
	Memory  int64 // bytes that it occupies, swap included
	Threads int64
}
