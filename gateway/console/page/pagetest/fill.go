package pagetest

import (
	"encoding/json"
	"reflect"
	"time"
)

// Hostile is a text that is a script wherever it is not shown as text.
const Hostile = `"><script>x</script>`

// Fill gives every field of what a pointer leads to a value: each text is Hostile.
func Fill(pointer any) { fill(reflect.ValueOf(pointer).Elem(), 0) }

func fill(v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 1, 31, 3, 4, 5, 0, time.UTC)))
		return
	}
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes([]byte(`{"a":"` + "b" + `"}`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(Hostile)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(12345)
	case reflect.Uint16:
		v.SetUint(443)
	case reflect.Float64:
		v.SetFloat(2.5)
	case reflect.Pointer:
		if depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), depth+1)
			fill(v.Index(1), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, depth+1)
		v.SetMapIndex(reflect.ValueOf("name").Convert(v.Type().Key()), value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(Hostile))
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Array: // an id
	default:
		panic("fill: " + v.Type().String())
	}
}
