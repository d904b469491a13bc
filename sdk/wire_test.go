package sdk

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// filled draws a value of a type with every field set, found by reflection, so
// that a field which somebody adds and forgets to convert fails the test.
func filled[T any](t *rapid.T) T {
	var value T
	fill(t, reflect.ValueOf(&value).Elem(), reflect.TypeFor[T]().Name())
	return value
}

func fill(t *rapid.T, v reflect.Value, name string) {
	switch v.Interface().(type) {
	case time.Time:
		moment := time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, name), rapid.Int64Range(0, 999_999_999).Draw(t, name))
		v.Set(reflect.ValueOf(moment.UTC()))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`"` + rapid.StringMatching(`[a-z]{0,9}`).Draw(t, name) + `"`))
		return
	case http.Header:
		v.Set(reflect.ValueOf(http.Header{"X-One": {word(t, name)}, "X-Two": {word(t, name), word(t, name)}}))
		return
	case Outcome:
		v.SetInt(int64(Refused)) // the only one that carries a refusal
		return
	case Blame:
		v.SetInt(rapid.Int64Range(1, int64(BlameAccount)).Draw(t, name))
		return
	case ReturnSort:
		v.SetInt(rapid.Int64Range(1, int64(ReturnReversal)).Draw(t, name))
		return
	case Status:
		v.SetInt(rapid.Int64Range(1, int64(StatusExpired)).Draw(t, name))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(word(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(1, 1<<31-1).Draw(t, name))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[Result]() && v.Type().Field(i).Name == "Mode" {
				continue // a verification's
			}
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 3).Draw(t, name), 3))
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, name)))
	default:
		t.Fatalf("%s is a %s, which this test can't fill yet", name, v.Type())
	}
}

func word(t *rapid.T, name string) string { return rapid.StringN(1, 12, -1).Draw(t, name) }

// roundTrip sends values of a type over the wire and back.
func roundTrip[T any, W proto.Message](t *testing.T, to func(T) W, from func(W) T) {
	t.Helper()
	t.Run(reflect.TypeFor[T]().Name(), func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			sent := filled[T](rt)
			encoded, err := proto.Marshal(to(sent))
			if err != nil {
				rt.Fatal(err)
			}
			received := reflect.New(reflect.TypeFor[W]().Elem()).Interface().(W)
			if err := proto.Unmarshal(encoded, received); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(sent, from(received)); diff != "" {
				rt.Errorf("sent and received differ:\n%s", diff)
			}
		})
		var zero T
		if diff := cmp.Diff(zero, from(to(zero)), cmp.Comparer(func(a, b http.Header) bool { return len(a) == len(b) })); diff != "" {
			t.Errorf("the zero value differs:\n%s", diff)
		}
	})
	convertsBack(t, to, from)
}

// convertsBack holds that every field of the wire is converted.
func convertsBack[T any, W proto.Message](t *testing.T, to func(T) W, from func(W) T) {
	t.Helper()
	t.Run(reflect.TypeFor[W]().Elem().Name(), func(t *testing.T) {
		t.Parallel()
		sent := reflect.New(reflect.TypeFor[W]().Elem()).Interface().(W)
		fillMessage(sent.ProtoReflect())
		if diff := cmp.Diff(sent, to(from(sent)), protocmp.Transform()); diff != "" {
			t.Errorf("a field of the wire is not converted:\n%s", diff)
		}
	})
}

// fillMessage sets every field of a message.
func fillMessage(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		switch {
		case field.Name() == "trace_parent", field.Name() == "exchanges":
			// They travel with the context: TestTheUpstreamIsToldOf.
		case field.Message() != nil && field.Message().FullName() == (&durationpb.Duration{}).ProtoReflect().Descriptor().FullName():
			// What is left is told when a message is sent: TestTheGatewayTellsWhatIsLeft.
		case field.IsList() && field.Message() != nil:
			fillMessage(m.Mutable(field).List().AppendMutable().Message())
		case field.IsList():
			m.Mutable(field).List().Append(scalar(field))
		case field.Message() != nil && field.Message().FullName() == (&timestamppb.Timestamp{}).ProtoReflect().Descriptor().FullName():
			m.Set(field, protoreflect.ValueOfMessage(timestamppb.New(time.Unix(int64(field.Number()), 5)).ProtoReflect()))
		case field.Message() != nil:
			fillMessage(m.Mutable(field).Message())
		default:
			m.Set(field, scalar(field))
		}
	}
}

func scalar(field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("X-" + strings.ToUpper(string(field.Name())[:1]))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(field.Name()))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(field.Number()))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(field.Number()))
	case protoreflect.EnumKind:
		if field.Enum().Name() == "Outcome" {
			return protoreflect.ValueOfEnum(pluginpb.Outcome_OUTCOME_REFUSED.Number())
		}
		return protoreflect.ValueOfEnum(2)
	default:
		panic("a kind of field that this test can't fill yet: " + field.Kind().String())
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	roundTrip(t, connectionToWire, connectionFromWire)
	roundTrip(t, callToWire, callFromWire)
	roundTrip(t, resultToWire, resultFromWire)
	roundTrip(t, quoteToWire, quoteFromWire)
	roundTrip(t, quotedToWire, quotedFromWire)
	roundTrip(t, lookupToWire, lookupFromWire)
	roundTrip(t, statusUpdateToWire, statusUpdateFromWire)
	convertsBack(t, verifiedToWire, verifiedFromWire) // what a verification can't say of a result does not travel
	roundTrip(t, statementToWire, statementFromWire)
	roundTrip(t, pageToWire, pageFromWire)
	roundTrip(t, notificationToWire, notificationFromWire)
	roundTrip(t, acknowledgementToWire, acknowledgementFromWire)
}

// TestHeaderNames: the same header in two spellings is one header.
func TestHeaderNames(t *testing.T) {
	t.Parallel()
	n := notificationFromWire(&pluginpb.NotifyRequest{Headers: []*pluginpb.Header{
		{Name: "x-callback-token", Values: []string{"a"}}, {Name: "X-Callback-Token", Values: []string{"b"}},
	}})
	if got := n.Header.Values("X-Callback-Token"); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("got %q", got)
	}
}

func TestEnumsHaveTheWiresNumbers(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct{ ours, wire int }{
		{int(Unknown), int(pluginpb.Outcome_OUTCOME_UNKNOWN)},
		{int(Done), int(pluginpb.Outcome_OUTCOME_DONE)},
		{int(Pending), int(pluginpb.Outcome_OUTCOME_PENDING)},
		{int(Refused), int(pluginpb.Outcome_OUTCOME_REFUSED)},
		{int(NotSent), int(pluginpb.Outcome_OUTCOME_NOT_SENT)},
		{int(BlameNone), int(pluginpb.Blame_BLAME_NONE)},
		{int(BlameUpstream), int(pluginpb.Blame_BLAME_UPSTREAM)},
		{int(BlameAccount), int(pluginpb.Blame_BLAME_ACCOUNT)},
		{int(BlameLimit), int(pluginpb.Blame_BLAME_LIMIT)},
		{int(StatusUnknown), int(pluginpb.Status_STATUS_UNKNOWN)},
		{int(StatusNotFound), int(pluginpb.Status_STATUS_NOT_FOUND)},
		{int(StatusPending), int(pluginpb.Status_STATUS_PENDING)},
		{int(StatusDone), int(pluginpb.Status_STATUS_DONE)},
		{int(StatusFailed), int(pluginpb.Status_STATUS_FAILED)},
		{int(StatusExpired), int(pluginpb.Status_STATUS_EXPIRED)},
	} {
		if pair.ours != pair.wire {
			t.Errorf("%d is %d on the wire", pair.ours, pair.wire)
		}
	}
	if n := len(pluginpb.Outcome_name) + len(pluginpb.Blame_name) + len(pluginpb.Status_name); n != 15 {
		t.Errorf("the wire has %d values, this test 15", n)
	}
}

// TestUnknownNumbersAreSafe: a newer plugin's words must not be taken for others.
func TestUnknownNumbersAreSafe(t *testing.T) {
	t.Parallel()
	for _, number := range []int32{-1, 6, 99} {
		r := resultFromWire(&pluginpb.CallResponse{Outcome: pluginpb.Outcome(number), Blame: pluginpb.Blame(number)})
		if r.Outcome != Unknown || r.Blame != BlameNone {
			t.Errorf("%d became %+v", number, r)
		}
		v := verifiedFromWire(&pluginpb.VerifyResponse{Outcome: pluginpb.Outcome(number), Blame: pluginpb.Blame(number)})
		if v.Outcome != Unknown || v.Blame != BlameNone {
			t.Errorf("%d became %+v", number, v)
		}
		if s := pageFromWire(&pluginpb.StatementResponse{Blame: pluginpb.Blame(number)}); s.Known || s.Blame != BlameNone {
			t.Errorf("%d became %+v", number, s)
		}
		f := statusUpdateFromWire(&pluginpb.StatusUpdate{Status: pluginpb.Status(number)})
		if f.Status != StatusUnknown {
			t.Errorf("%d became %+v", number, f)
		}
	}
	if f := statusUpdateFromWire(nil); f.Status != StatusUnknown {
		t.Errorf("no status update became %+v", f)
	}
}

// TestForeignBytesFitTheWire: gRPC refuses a message with a string that is not
// UTF-8, and a refusal in an upstream's odd letters would become unknown.
func TestForeignBytesFitTheWire(t *testing.T) {
	t.Parallel()
	const odd = "caf\xe9"
	update := StatusUpdate{Reference: odd, ProviderReference: odd, Currency: odd, EventID: odd, Channel: odd, Detail: odd}
	result := Refuse(odd, odd, FieldFault{Field: odd, Message: odd})
	result.ProviderReference, result.Detail = odd, odd
	for _, message := range []proto.Message{
		resultToWire(result),
		verifiedToWire(result),
		pageToWire(StatementPage{Cursor: odd, Detail: odd, Lines: []StatementLine{{ID: odd, Reference: odd, Currency: odd}}}),
		statusUpdateToWire(update),
		notificationToWire(Notification{Method: odd, Query: odd, Header: http.Header{odd: {odd}}}),
		acknowledgementToWire(Acknowledgement{ContentType: odd, Detail: odd, Updates: []StatusUpdate{update}}),
	} {
		if _, err := proto.Marshal(message); err != nil {
			t.Errorf("%T: %v", message, err)
		}
	}
	if got := resultFromWire(resultToWire(result)).Refusal.Message; got != "caf\uFFFD" {
		t.Errorf("got %q", got)
	}
}
