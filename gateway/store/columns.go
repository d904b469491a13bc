package store

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// reading is a DBTX of package dbsqlc that takes single rows in as [columns].
type reading struct{ dbsqlc.DBTX }

// QueryRow reads one row.
func (r reading) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	row := r.DBTX.QueryRow(ctx, sql, args...)
	return scanning(func(into ...any) error { return row.Scan(columns(into)) })
}

// columns takes in a row of the types that our tables have. Pgx plans anew, for each row
// that is read alone, how to read each of its columns: for a movement's that costs more
// than all else on our side. What is not read here, or does not fit, is left to pgx.
type columns []any

// ScanRow is of [pgx.RowScanner].
func (into columns) ScanRow(rows pgx.Rows) error {
	fields, values := rows.FieldDescriptions(), rows.RawValues()
	if len(fields) != len(into) {
		return rows.Scan(into...) // which says so
	}
	for i := range fields {
		if takeIn(&fields[i], values[i], into[i]) {
			continue
		}
		if err := rows.TypeMap().Scan(fields[i].DataTypeOID, fields[i].Format, values[i], into[i]); err != nil {
			return pgx.ScanArgError{ColumnIndex: i, FieldName: fields[i].Name, Err: err}
		}
	}
	return nil
}

// takeIn reads a value of a type of ours, and says whether it has.
func takeIn(field *pgconn.FieldDescription, value []byte, into any) bool {
	switch into := into.(type) {
	case *string:
		return isText(field, value) && set(into, string(value))
	case **string:
		return value == nil && set(into, nil) || isText(field, value) && set(into, new(string(value)))
	case *time.Time:
		return isMoment(field, value) && set(into, moment(value))
	case **time.Time:
		return value == nil && set(into, nil) || isMoment(field, value) && set(into, new(moment(value)))
	case *int64:
		return is(field, value, pgtype.Int8OID, 8) && set(into, integer(value))
	case **int64:
		return value == nil && set(into, nil) || is(field, value, pgtype.Int8OID, 8) && set(into, new(integer(value)))
	case *int32:
		return is(field, value, pgtype.Int4OID, 4) && set(into, int32(binary.BigEndian.Uint32(value))) //nolint:gosec // two's complement is meant
	case **int32:
		return value == nil && set(into, nil) ||
			is(field, value, pgtype.Int4OID, 4) && set(into, new(int32(binary.BigEndian.Uint32(value)))) //nolint:gosec // the same
	case *bool:
		return is(field, value, pgtype.BoolOID, 1) && set(into, value[0] == 1)
	case **bool:
		return value == nil && set(into, nil) || is(field, value, pgtype.BoolOID, 1) && set(into, new(value[0] == 1))
	case *uuid.UUID:
		return is(field, value, pgtype.UUIDOID, 16) && set(into, uuid.UUID(value))
	case **uuid.UUID:
		return value == nil && set(into, nil) || is(field, value, pgtype.UUIDOID, 16) && set(into, new(uuid.UUID(value)))
	case *[16]byte:
		return is(field, value, pgtype.UUIDOID, 16) && set(into, [16]byte(value))
	}
	return false
}

func set[T any](into *T, value T) bool {
	*into = value
	return true
}

func isText(field *pgconn.FieldDescription, value []byte) bool {
	return value != nil && (field.DataTypeOID == pgtype.TextOID || field.DataTypeOID == pgtype.VarcharOID)
}

// is tells whether a value is there, in the binary form of a type of fixed length.
func is(field *pgconn.FieldDescription, value []byte, oid uint32, length int) bool {
	return field.DataTypeOID == oid && field.Format == pgtype.BinaryFormatCode && len(value) == length
}

func integer(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) } //nolint:gosec // two's complement is meant

// isMoment leaves the ends of time, which are no moments, to pgx.
func isMoment(field *pgconn.FieldDescription, value []byte) bool {
	if !is(field, value, pgtype.TimestamptzOID, 8) {
		return false
	}
	at := integer(value)
	return at != 1<<63-1 && at != -1<<63
}

// epoch is what the database counts microseconds from, in seconds: the year 2000.
const epoch = 946684800

func moment(value []byte) time.Time {
	at := integer(value)
	return time.Unix(epoch+at/1_000_000, at%1_000_000*1_000)
}
