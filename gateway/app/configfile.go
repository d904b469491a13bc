package app

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// durationHasUnit refuses a number where a time is expected: 5 would be five nanoseconds.
func durationHasUnit(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	text, isText := value.(string)
	if !isText {
		return nil, fmt.Errorf("must have a unit, such as %vs", value)
	}
	return time.ParseDuration(text)
}

// step is a key of a path such as plugins[0].path, with an index behind it.
var step = regexp.MustCompile(`^([^[]*)(?:\[(\d+)\])?$`)

// unknown says of keys that no setting has where they stand in the file.
func unknown(path string, keys []string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return err
	}
	slices.Sort(keys)
	for i, key := range keys {
		if line := lineOf(&document, key); line > 0 {
			keys[i] = fmt.Sprintf("line %d: %s", line, key)
		}
	}
	return fmt.Errorf("no setting has the name: %s", strings.Join(keys, "; "))
}

// lineOf is the line of a key in a document, 0 where it can't be told.
func lineOf(at *yaml.Node, path string) int {
	if len(at.Content) == 0 {
		return 0
	}
	at, line := at.Content[0], 0
	for name := range strings.SplitSeq(path, ".") {
		parts := step.FindStringSubmatch(name)
		if parts == nil || at.Kind != yaml.MappingNode {
			return line
		}
		i := 0
		for i < len(at.Content) && at.Content[i].Value != parts[1] {
			i += 2
		}
		if i >= len(at.Content) {
			return line
		}
		line, at = at.Content[i].Line, at.Content[i+1]
		if n, err := strconv.Atoi(parts[2]); err == nil && n < len(at.Content) {
			at = at.Content[n]
		}
	}
	return line
}
