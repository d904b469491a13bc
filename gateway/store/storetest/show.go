package storetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// epoch is when the stories play.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// names turn what is random (ids, merchants, drawn amounts) into names in the order in
// which it first appears, so that what two stores return can be compared.
type names struct {
	known   map[string]string
	amounts map[money.Amount]string
}

func newNames() *names { return &names{known: map[string]string{}, amounts: map[money.Amount]string{}} }

func (n *names) of(kind, value string) string {
	if n.known[value] == "" {
		n.known[value] = fmt.Sprintf("%s%d", kind, len(n.known)+1)
	}
	return n.known[value]
}

// show writes a value without what is zero.
func (n *names) show(value any) string {
	switch value := value.(type) {
	case nil:
		return "nil"
	case error:
		return showError(value)
	case time.Time:
		return value.Sub(epoch).String()
	case json.RawMessage:
		return string(value)
	case movement.ID:
		return n.of("id", value.String())
	case movement.AccountID:
		return n.of("account", value.String())
	case uuid.UUID:
		return n.of("id", value.String())
	case money.Amount:
		return cmp.Or(n.amounts[value], value.String())
	case string:
		for raw, name := range n.known {
			value = strings.ReplaceAll(value, raw, name)
		}
		for amount, name := range n.amounts {
			value = strings.ReplaceAll(value, ": "+amount.String()+" ", ": "+name+" ")
		}
		return value
	}
	return n.compose(reflect.ValueOf(value))
}

// compose writes a value of several parts.
func (n *names) compose(v reflect.Value) string {
	var parts []string
	switch v.Kind() { //nolint:exhaustive // all others have one part
	case reflect.Pointer:
		if v.IsNil() {
			return "nil"
		}
		return n.show(v.Elem().Interface())
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); !field.IsZero() {
				parts = append(parts, v.Type().Field(i).Name+":"+n.show(field.Interface()))
			}
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, n.show(v.Index(i).Interface()))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.String:
		return n.show(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// showError is what a caller tells errors apart by.
func showError(err error) string {
	for name, target := range map[string]error{
		"insufficient": movement.ErrInsufficient, "not found": movement.ErrNotFound, "overridden": movement.ErrOverridden,
		"foreign account": movement.ErrForeignAccount, "invalid": movement.ErrInvalid,
	} {
		if errors.Is(err, target) {
			return "error: " + name
		}
	}
	if limit, is := errors.AsType[*movement.LimitError](err); is {
		return "error: limit " + limit.Name
	}
	if full, is := errors.AsType[*movement.NoAmountError](err); is {
		return "error: no amount before " + full.FreeAt.Sub(epoch).String()
	}
	return "error"
}
