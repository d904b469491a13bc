// Package browser lets tests look at pages as people do: in headless Chromium, driven
// by scripts for Node with Playwright, and judged by axe. It installs what the scripts
// import, from deploy/tools/browser, once into the user's cache. It is test support,
// and must not know a page: that is the affair of the test and its script.
package browser
