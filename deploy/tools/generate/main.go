// Command generate makes Go code from .proto files without an installed
// protoc. It owns the compilation and the hand-over to the generators
// (protoc-gen-go and protoc-gen-go-grpc, at the versions this module's go.mod
// names). It must not know what the files are about, and it writes nothing but
// what the generators answer.
//
// Usage:
//
//	go -C deploy/tools/generate run . -root ROOT FILE.proto...
//
// Files are named relative to ROOT, as they import one another.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// generators answer one protoc plugin request each; both are tools of this
// module, so the version cannot differ between two machines.
var generators = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

func main() {
	root := flag.String("root", ".", "directory that .proto files and imports are relative to")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: generate [-root DIR] FILE.proto...")
		os.Exit(2)
	}
	if err := generate(context.Background(), *root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, root string, files []string) error {
	request, err := compile(ctx, root, files)
	if err != nil {
		return err
	}
	for _, generator := range generators {
		response, err := ask(ctx, generator, request)
		if err != nil {
			return fmt.Errorf("%s: %w", generator, err)
		}
		if err := write(root, response); err != nil {
			return fmt.Errorf("%s: %w", generator, err)
		}
	}
	return nil
}

// compile answers the request that protoc would send for these files.
func compile(ctx context.Context, root string, files []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	linked, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("paths=source_relative"),
	}
	seen := map[string]bool{}
	for _, file := range linked {
		request.ProtoFile = appendInOrder(request.ProtoFile, seen, file)
	}
	return request, nil
}

// appendInOrder adds a file after everything it imports, as generators demand.
func appendInOrder(out []*descriptorpb.FileDescriptorProto, seen map[string]bool, file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return out
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		out = appendInOrder(out, seen, imports.Get(i).FileDescriptor)
	}
	return append(out, protoutil.ProtoFromFileDescriptor(file))
}

// ask runs one generator: the request on its standard input, the response on
// its standard output.
func ask(ctx context.Context, generator string, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "tool", generator)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out.Bytes(), response); err != nil {
		return nil, err
	}
	if response.GetError() != "" {
		return nil, errors.New(response.GetError())
	}
	return response, nil
}

func write(root string, response *pluginpb.CodeGeneratorResponse) error {
	for _, file := range response.GetFile() {
		name := filepath.Join(root, filepath.FromSlash(file.GetName()))
		if err := os.WriteFile(name, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
