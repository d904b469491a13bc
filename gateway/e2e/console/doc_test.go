// Package console_test plays what people do in the consoles, in a browser.
package console_test
