package qris

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// object is one tag and its value.
type object struct {
	tag   string
	value string
}

// maxValue is the longest value that two digits of length can tell.
const maxValue = 99

// split takes a row of objects apart. Parent is the tag whose value the row
// is, empty at the root; errors name the tag they stopped at.
func split(text, parent string) ([]object, error) {
	// Most codes have some fifteen objects at the root; one allocation.
	objects := make([]object, 0, 16)
	for rest := text; rest != ""; {
		tag, length, value, ok := header(rest)
		if !ok {
			return nil, fail(parent, "four digits of tag and length are expected after %d objects", len(objects))
		}
		value, rest, ok = cut(value, length)
		switch {
		case length == 0:
			return nil, fail(join(parent, tag), "is empty")
		case !ok:
			return nil, fail(join(parent, tag), "ends before its %d characters", length)
		case has(objects, tag):
			return nil, fail(join(parent, tag), "appears twice")
		}
		objects = append(objects, object{tag, value})
	}
	return objects, nil
}

// header reads the two digits of tag and two of length that begin an object.
func header(text string) (tag string, length int, rest string, ok bool) {
	if len(text) < 4 || !allDigits(text[:4]) {
		return "", 0, "", false
	}
	return text[:2], int(text[2]-'0')*10 + int(text[3]-'0'), text[4:], true
}

// cut splits a text after so many characters; false when it has fewer.
func cut(text string, characters int) (value, rest string, ok bool) {
	end := 0
	for range characters {
		if end >= len(text) {
			return text, "", false
		}
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end], text[end:], true
}

// write puts objects together again.
func write(objects []object) string {
	var b strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&b, "%s%02d%s", o.tag, utf8.RuneCountInString(o.value), o.value)
	}
	return b.String()
}

func find(objects []object, tag string) (string, bool) {
	for _, o := range objects {
		if o.tag == tag {
			return o.value, true
		}
	}
	return "", false
}

func has(objects []object, tag string) bool {
	_, found := find(objects, tag)
	return found
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// join names a tag inside another as 62-05.
func join(parent, tag string) string {
	if parent == "" {
		return tag
	}
	return parent + "-" + tag
}
