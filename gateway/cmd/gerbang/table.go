package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// table are the rows of a list under its head, by the tags of an entry's fields: column is a heading, otherwise what is
// shown where the field is empty, and quoted is for what others have written.
func table[T any](list []T) [][]string {
	var columns []reflect.StructField
	rows := [][]string{nil}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if heading, ok := field.Tag.Lookup("column"); ok {
			columns, rows[0] = append(columns, field), append(rows[0], heading)
		}
	}
	for _, entry := range list {
		row := make([]string, len(columns))
		for i, column := range columns {
			if row[i] = cell(reflect.ValueOf(entry).FieldByIndex(column.Index).Interface()); row[i] == "" {
				row[i] = column.Tag.Get("otherwise")
			}
			if _, quoted := column.Tag.Lookup("quoted"); quoted {
				row[i] = strconv.Quote(row[i])
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// cell is a value as a table shows it.
func cell(value any) string {
	switch value := value.(type) {
	case time.Time:
		if value.IsZero() {
			return "-"
		}
		return timeText(&value)
	case *time.Time:
		return timeText(value)
	case *int64:
		return numberText(value)
	case []string:
		return strings.Join(value, " ")
	}
	return fmt.Sprint(value)
}
