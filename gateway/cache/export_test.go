package cache

// Idle waits until nothing runs in the background.
func (c *Cache) Idle() { c.flights.Wait() }

// Row is the name of a key's row.
func (k Key) Row() string { return k.row() }
