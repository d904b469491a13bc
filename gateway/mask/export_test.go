package mask

// Harmless reports whether the values of a field stay as they are.
func Harmless(name string) bool { return classOf(name) == harmless }
