package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// The plugins of other versions are this binary too, without package sdk's own messages:
// the environment holds the wire that they speak and what they answer.
const (
	envWire    = "HOST_TEST_WIRE"    // a FileDescriptorProto in base64
	envAnswers = "HOST_TEST_ANSWERS" // JSON by method, or method/reference
)

// wireFile is the list of what the wire of an interface has.
func wireFile(number int) string { return fmt.Sprintf("testdata/wire-%d.txt", number) }

func wireLines(t *testing.T, number int) []string {
	t.Helper()
	text, err := os.ReadFile(wireFile(number))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// trim removes from a wire what keep refuses. It is asked about a line for each method,
// value and field.
func trim(wire *descriptorpb.FileDescriptorProto, keep func(line string) bool) {
	for _, s := range wire.GetService() {
		s.Method = slices.DeleteFunc(s.Method, func(m *descriptorpb.MethodDescriptorProto) bool {
			return !keep(fmt.Sprintf("rpc %s %s %s", m.GetName(), short(m.GetInputType()), short(m.GetOutputType())))
		})
	}
	for _, e := range wire.GetEnumType() {
		e.Value = slices.DeleteFunc(e.Value, func(v *descriptorpb.EnumValueDescriptorProto) bool {
			return !keep(fmt.Sprintf("enum %s %s = %d", e.GetName(), v.GetName(), v.GetNumber()))
		})
	}
	for _, m := range wire.GetMessageType() {
		m.Field = slices.DeleteFunc(m.Field, func(f *descriptorpb.FieldDescriptorProto) bool {
			kind := strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
			if f.GetTypeName() != "" {
				kind = short(f.GetTypeName())
			}
			if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
				kind = "repeated " + kind
			}
			return !keep(fmt.Sprintf("%s %s %s = %d", m.GetName(), kind, f.GetName(), f.GetNumber()))
		})
	}
}

func short(name string) string { return name[strings.LastIndex(name, ".")+1:] }

func wireNow() *descriptorpb.FileDescriptorProto {
	return protodesc.ToFileDescriptorProto(pluginpb.File_sdk_pluginpb_provider_proto)
}

// TestWireOnlyGrows: what a plugin was built against once stays as it was. The wire of
// this gateway is that of its interface's list, line by line.
func TestWireOnlyGrows(t *testing.T) {
	t.Parallel()
	var now []string
	trim(wireNow(), func(line string) bool { now = append(now, line); return true })
	for number := range manifest.Interface {
		for _, line := range wireLines(t, number) {
			if !slices.Contains(now, line) {
				t.Errorf("interface %d had %q, and plugins rely on it", number, line)
			}
		}
	}
	if diff := cmp.Diff(wireLines(t, manifest.Interface), now); diff != "" {
		t.Errorf("the wire is not that of interface %d. Where it has grown, raise manifest.Interface, tell in sdk/VERSIONS.md what is new, and write %s:\n%s",
			manifest.Interface, wireFile(manifest.Interface+1), diff)
	}
}

// olderWire has what an interface had, and nothing else.
func olderWire(t *testing.T, number int) *descriptorpb.FileDescriptorProto {
	t.Helper()
	wire, had := wireNow(), wireLines(t, number)
	trim(wire, func(line string) bool { return slices.Contains(had, line) })
	wire.EnumType = slices.DeleteFunc(wire.GetEnumType(), func(e *descriptorpb.EnumDescriptorProto) bool { return len(e.GetValue()) == 0 }) // one that is newer
	return wire
}

// newerWire has a method, a value in each enum and a field in each message that nobody
// knows yet.
func newerWire() *descriptorpb.FileDescriptorProto {
	wire := wireNow()
	for _, s := range wire.GetService() {
		added := proto.CloneOf(s.GetMethod()[0])
		added.Name = proto.String("Refund")
		s.Method = append(s.Method, added)
	}
	for _, e := range wire.GetEnumType() {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(strings.ToUpper(e.GetName()) + "_ADDED"), Number: proto.Int32(9)})
	}
	for _, m := range wire.GetMessageType() {
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: proto.String("added"), Number: proto.Int32(100), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		})
	}
	return wire
}

// wireSpec is a plugin that speaks a wire and answers so.
func wireSpec(t *testing.T, name string, wire *descriptorpb.FileDescriptorProto, document []byte, answers map[string]string) Spec {
	t.Helper()
	encoded, err := proto.Marshal(wire)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"Describe": fmt.Sprintf(`{"manifest": %q}`, base64.StdEncoding.EncodeToString(document))}
	for method, answer := range answers {
		all[method] = answer
	}
	said, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec(name, envWire+"="+base64.StdEncoding.EncodeToString(encoded), envAnswers+"="+string(said))
	spec.Env[0] = envRole + "=wire"
	return spec
}

// serveWire runs such a plugin.
func serveWire() {
	encoded, err := base64.StdEncoding.DecodeString(os.Getenv(envWire))
	var wire descriptorpb.FileDescriptorProto
	if err == nil {
		err = proto.Unmarshal(encoded, &wire)
	}
	p := &wirePlugin{calls: map[string]int{}}
	if err == nil {
		err = json.Unmarshal([]byte(os.Getenv(envAnswers)), &p.answers)
	}
	if err == nil {
		p.file, err = protodesc.NewFile(&wire, protoregistry.GlobalFiles)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: sdk.Handshake, Plugins: plugin.PluginSet{sdk.PluginName: p}, GRPCServer: plugin.DefaultGRPCServer,
	})
}

type wirePlugin struct {
	plugin.NetRPCUnsupportedPlugin
	file    protoreflect.FileDescriptor
	answers map[string]string

	mu    sync.Mutex
	calls map[string]int // by reference
}

func (p *wirePlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (p *wirePlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	service := p.file.Services().Get(0)
	served := grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*any)(nil)}
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		served.Methods = append(served.Methods, grpc.MethodDesc{
			MethodName: string(m.Name()),
			Handler: func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				request := dynamicpb.NewMessage(m.Input())
				if err := read(request); err != nil {
					return nil, err
				}
				return p.answer(m, request)
			},
		})
	}
	s.RegisterService(&served, p)
	return nil
}

func (p *wirePlugin) answer(m protoreflect.MethodDescriptor, request *dynamicpb.Message) (any, error) {
	reference := ""
	if field := m.Input().Fields().ByName("reference"); field != nil {
		reference = request.Get(field).String()
	}
	p.mu.Lock()
	if m.Name() == "Call" {
		p.calls[reference]++
	}
	calls := p.calls[reference]
	p.mu.Unlock()
	said, ok := p.answers[string(m.Name())+"/"+reference]
	if !ok {
		said, ok = p.answers[string(m.Name())]
	}
	if !ok {
		return nil, status.Error(codes.Unimplemented, "unknown method "+string(m.Name()))
	}
	said = strings.NewReplacer("$reference", reference, "$calls", strconv.Itoa(calls)).Replace(said)
	response := dynamicpb.NewMessage(m.Output())
	return response, protojson.Unmarshal([]byte(said), response)
}

// callOf is a payment under a reference.
func callOf(reference string) sdk.Call {
	c := callTo("accept")
	c.Reference = reference
	return c
}

// TestOlderPlugin: a plugin of each wire before is called as ever. What it does not have
// is never taken for an answer, whatever its manifest says.
func TestOlderPlugin(t *testing.T) {
	t.Parallel()
	for number := range manifest.Interface {
		t.Run(fmt.Sprintf("interface %d", number), func(t *testing.T) {
			t.Parallel()
			olderPlugin(t, number)
		})
	}
}

func olderPlugin(t *testing.T, number int) {
	t.Helper()
	h := startHost(t, calm, Config{Specs: []Spec{wireSpec(t, "older", olderWire(t, number), manifestOf("older"), map[string]string{
		"Call":      `{"outcome": "OUTCOME_PENDING", "providerReference": "p-$reference", "data": "e30="}`,
		"Call/lost": `{"outcome": "OUTCOME_UNKNOWN", "blame": "BLAME_UPSTREAM", "detail": "503"}`,
		"Lookup":    `{"update": {"reference": "$reference", "status": "STATUS_DONE", "amount": "100", "currency": "IDR"}}`,
		"Notify":    `{"updates": [{"reference": "r", "status": "STATUS_DONE", "amount": "100"}]}`,
	})}})
	if err := h.Down(); err != nil {
		t.Fatal(err)
	}
	of, with := Use{Provider: "older", MerchantID: "m", Money: true}, callTo("").Connection
	if r := h.Call(t.Context(), of, callOf("r"), patience); r.Outcome != sdk.Pending || r.ProviderReference != "p-r" || string(r.Data) != "{}" {
		t.Errorf("a call: %+v", r)
	}
	if r := h.Call(t.Context(), of, callOf("lost"), patience); r.Outcome != sdk.Unknown || r.Errored || r.Detail != "503" {
		t.Errorf("a call that is lost: %+v", r)
	}
	if u := h.Lookup(t.Context(), of, sdk.Lookup{Reference: "r", Connection: with}, patience); u.Status != sdk.StatusDone || u.Reference != "r" || u.Amount != 100 || u.Channel != "" {
		t.Errorf("a lookup: %+v", u)
	}
	if a, err := h.Notify(t.Context(), "older", sdk.Notification{Connection: with}, patience); err != nil || len(a.Updates) != 1 || a.Updates[0].Status != sdk.StatusDone {
		t.Errorf("a notification: %+v, %v", a, err)
	}
	if q := h.Quote(t.Context(), of, sdk.Quote{Operation: "/test/order", Connection: with}, patience); q.Outcome != sdk.Unknown {
		t.Errorf("a quote that it does not have: %+v", q)
	}
	if r := h.Verify(t.Context(), "older", with, patience); r.Outcome != sdk.Unknown || r.Blame != sdk.BlameNone {
		t.Errorf("a verification that it does not have: %+v", r)
	}
	if p := h.Statement(t.Context(), "older", sdk.Statement{Connection: with}, patience); p.Known || p.More || !p.Through.IsZero() {
		t.Errorf("a statement that it does not have: %+v", p)
	}
}

// TestNewerPlugin: fields, methods and blame that nobody knows yet change nothing. An
// outcome or a status that nobody knows yet says nothing, and is never acknowledged.
func TestNewerPlugin(t *testing.T) {
	t.Parallel()
	strange := func(number string) string {
		return fmt.Sprintf("the plugin says %s 9, which gateways of interface %d don't know: it is for a newer gateway", number, manifest.Interface)
	}
	h := startHost(t, calm, Config{Specs: []Spec{wireSpec(t, "newer", newerWire(), manifestOf("newer"), map[string]string{
		"Call":        `{"outcome": "OUTCOME_PENDING", "providerReference": "p-$reference", "data": "e30=", "added": "x"}`,
		"Call/part":   `{"outcome": "OUTCOME_ADDED", "errored": true, "amount": "50", "data": "e30=", "detail": "half of it", "added": "x"}`,
		"Call/payer":  `{"outcome": "OUTCOME_NOT_SENT", "blame": "BLAME_ADDED"}`,
		"Call/plain":  `{"outcome": "OUTCOME_UNKNOWN", "errored": true, "detail": "E1"}`,
		"Lookup":      `{"added": "x", "update": {"reference": "$reference", "status": "STATUS_DONE", "amount": "100", "currency": "IDR", "added": "x"}}`,
		"Lookup/part": `{"update": {"reference": "$reference", "status": "STATUS_ADDED", "amount": "50", "detail": "$calls calls"}}`,
		"Notify":      `{"updates": [{"reference": "r", "status": "STATUS_DONE"}, {"reference": "part", "status": "STATUS_ADDED"}]}`,
		"Quote":       `{"outcome": "OUTCOME_ADDED", "price": "10"}`,
		"Verify":      `{"outcome": "OUTCOME_ADDED", "blame": "BLAME_ADDED"}`,
		"Statement":   `{"known": true, "cursor": "c", "added": "x", "lines": [{"id": "1", "amount": "100", "added": "x"}]}`,
	})}})
	if err := h.Down(); err != nil {
		t.Fatal(err)
	}
	of, with := Use{Provider: "newer", MerchantID: "m", Money: true}, callTo("").Connection
	for reference, want := range map[string]sdk.Result{
		"r":     {Outcome: sdk.Pending, ProviderReference: "p-r", Data: json.RawMessage("{}")},
		"part":  {Outcome: sdk.Unknown, Amount: 50, Data: json.RawMessage("{}"), Detail: strange("outcome") + ". half of it"},
		"payer": {Outcome: sdk.NotSent},
		"plain": {Outcome: sdk.Unknown, Errored: true, Detail: "E1"},
	} {
		if diff := cmp.Diff(want, h.Call(t.Context(), of, callOf(reference), patience)); diff != "" {
			t.Errorf("call %s:\n%s", reference, diff)
		}
	}
	for reference, want := range map[string]sdk.StatusUpdate{
		"r":    {Reference: "r", Status: sdk.StatusDone, Amount: 100, Currency: "IDR"},
		"part": {Reference: "part", Amount: 50, Detail: strange("status") + ". 1 calls"},
	} {
		if diff := cmp.Diff(want, h.Lookup(t.Context(), of, sdk.Lookup{Reference: reference, Connection: with}, patience)); diff != "" {
			t.Errorf("lookup %s:\n%s", reference, diff)
		}
	}
	if a, err := h.Notify(t.Context(), "newer", sdk.Notification{Connection: with}, patience); err == nil || !strings.Contains(err.Error(), strange("status")) {
		t.Errorf("a notification: %+v, %v", a, err)
	}
	if q := h.Quote(t.Context(), of, sdk.Quote{Operation: "/test/order", Connection: with}, patience); q.Outcome != sdk.Unknown || q.Detail != strange("outcome")+"." {
		t.Errorf("a quote: %+v", q)
	}
	if r := h.Verify(t.Context(), "newer", with, patience); r.Outcome != sdk.Unknown || r.Blame != sdk.BlameNone || r.Detail != strange("outcome")+"." {
		t.Errorf("a verification: %+v", r)
	}
	if p := h.Statement(t.Context(), "newer", sdk.Statement{Connection: with}, patience); !p.Known || len(p.Lines) != 1 || p.Lines[0].Amount != 100 {
		t.Errorf("a statement: %+v", p)
	}
}

// TestPluginForANewerGateway: what its manifest says it needs is refused in one sentence,
// whatever else nobody knows yet stands in it, and nothing is sent to it.
func TestPluginForANewerGateway(t *testing.T) {
	t.Parallel()
	document := strings.Replace(string(manifestOf("newer")), `"manifest": 1,`, `"manifest": 2, "needs": 99, "splits": {"by": "/share"},`, 1)
	h := startHost(t, calm, Config{Specs: []Spec{wireSpec(t, "newer", newerWire(), []byte(document), map[string]string{
		"Call": `{"outcome": "OUTCOME_DONE"}`,
	})}})
	want := fmt.Sprintf(`plugin newer: manifest "newer": /needs: needs gateway >= 99, this is %d`, manifest.Interface)
	if err := h.Down(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if r := h.Call(t.Context(), Use{Provider: "newer", MerchantID: "m", Money: true}, callOf("r"), patience); r.Outcome != sdk.NotSent {
		t.Errorf("a call: %+v", r)
	}
}
