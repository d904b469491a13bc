// Package sdktest runs the conformance suite in a plugin's own Go tests. [Main]
// makes the test binary the plugin and its simulator, [Run] makes a subtest of each
// case. It owns no case and knows no provider: both are those of gerbang plugin test
// ([github.com/seed-f006e74d/gerbang/sdk/conformance]), and what differs between
// providers stands in examples.json.
package sdktest
