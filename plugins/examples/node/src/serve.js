// Speaks the wire: the handshake with the gateway, and the services beside the
// provider's own. Nothing here knows a payment; sdk/WIRE.md tells the reasons.
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import providerProto from '../../../../sdk/pluginpb/provider.proto';
import { pem, selfSigned } from './certificate.js';
import { exitWithHost } from './parent.js';

const maxMessage = 8 << 20;

// What go-plugin asks of every plugin, beside its health.
const baseProto = `
  syntax = "proto3";
  package plugin;
  message Empty {}
  service GRPCController { rpc Shutdown(Empty) returns (Empty); }
`;
const healthProto = `
  syntax = "proto3";
  package grpc.health.v1;
  message HealthCheckRequest { string service = 1; }
  message HealthCheckResponse { int32 status = 1; }
  service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
`;
// Imported by provider.proto, and not parsed from a file.
const googleProto = `
  syntax = "proto3";
  package google.protobuf;
  message Timestamp { int64 seconds = 1; int32 nanos = 2; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
`;

const toObject = { longs: Number, defaults: true, bytes: Buffer };

// service makes a gRPC service definition of one in a proto text.
function service(name, ...protos) {
  const root = new protobuf.Root();
  for (const text of protos) protobuf.parse(text, root, { keepCase: true });
  const found = root.lookupService(name);
  found.resolveAll();
  return Object.fromEntries(found.methodsArray.map((method) => {
    const request = method.resolvedRequestType;
    const response = method.resolvedResponseType;
    return [method.name, {
      path: `/${name}/${method.name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (m) => Buffer.from(request.encode(request.fromObject(m)).finish()),
      requestDeserialize: (b) => request.toObject(request.decode(b), toObject),
      responseSerialize: (m) => Buffer.from(response.encode(response.fromObject(m)).finish()),
      responseDeserialize: (b) => response.toObject(response.decode(b), toObject),
    }];
  }));
}

// serve runs the plugin until the gateway ends it. A handler gets the request and an
// AbortSignal, and gives the response.
export async function serve(handlers) {
  const { GERBANG_PLUGIN, PLUGIN_CLIENT_CERT, PLUGIN_PROTOCOL_VERSIONS = '', PLUGIN_UNIX_SOCKET_DIR = tmpdir() } = process.env;
  if (GERBANG_PLUGIN !== 'gerbang.provider.v1' || !PLUGIN_CLIENT_CERT) {
    console.error('This is a plugin of Gerbang: the gateway starts it.');
    process.exit(1);
  }
  if (!PLUGIN_PROTOCOL_VERSIONS.split(',').includes('1')) {
    console.error(`The gateway speaks versions ${PLUGIN_PROTOCOL_VERSIONS} of the wire, this plugin version 1.`);
    process.exit(1);
  }
  exitWithHost();

  const server = new grpc.Server({ 'grpc.max_receive_message_length': maxMessage, 'grpc.max_send_message_length': maxMessage });
  server.addService(service('gerbang.provider.v1.Provider', googleProto, providerProto.replace(/^import .*$/gm, '')), unary(handlers));
  server.addService(service('grpc.health.v1.Health', healthProto), unary({ Check: ({ service: name }) => health(name) }));
  server.addService(service('plugin.GRPCController', baseProto), unary({ Shutdown: shutdown }));

  const { key, certificate } = selfSigned();
  const credentials = grpc.ServerCredentials.createSsl(
    Buffer.from(PLUGIN_CLIENT_CERT),
    [{ private_key: Buffer.from(key), cert_chain: Buffer.from(pem(certificate)) }],
    true, // only the gateway has the key of the certificate that it gave us
  );
  const socket = join(PLUGIN_UNIX_SOCKET_DIR, `plugin${randomBytes(6).toString('hex')}`);
  await new Promise((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, credentials, (error) => (error ? reject(error) : resolve()));
  });
  const field = certificate.toString('base64').replace(/=+$/, '');
  process.stdout.write(`1|1|unix|${socket}|grpc|${field}\n`);
}

function health(name) {
  if (name !== 'plugin') throw Object.assign(new Error('unknown service'), { code: grpc.status.NOT_FOUND });
  return { status: 1 }; // SERVING
}

function shutdown() {
  setImmediate(() => process.exit(0)); // the connection's end is answer enough
  return {};
}

// unary wraps handlers for gRPC. What a handler throws is told to nobody but the log,
// by its kind alone: its message may hold what the handler was working on.
function unary(handlers) {
  return Object.fromEntries(Object.entries(handlers).map(([name, handler]) => [name, async (call, callback) => {
    const control = new AbortController();
    call.on('cancelled', () => control.abort());
    const timer = setTimeout(() => control.abort(), margin(call.getDeadline()));
    try {
      callback(null, await handler(call.request, control.signal));
    } catch (error) {
      if (error.code !== grpc.status.NOT_FOUND) console.error(JSON.stringify({ '@level': 'error', '@message': `${name} failed: ${error.name}` }));
      callback({ code: error.code === grpc.status.NOT_FOUND ? error.code : grpc.status.INTERNAL, details: `${name} failed` });
    } finally {
      clearTimeout(timer);
    }
  }]));
}

// margin is how long a handler may take: it ends a little before the gateway stops
// waiting, so that its own word on a timeout still arrives.
function margin(deadline) {
  const left = Number(deadline) - Date.now();
  if (!Number.isFinite(left)) return 30_000;
  return Math.max(left - Math.min(left / 10, 250), 0);
}
