// Makes the plugin's certificate for AutoMTLS. Node makes keys and signatures, but
// no certificates, so the few bytes around them are written here; sdk/WIRE.md
// shows the result byte by byte.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

// der is one DER value: tag, length, content.
function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  const n = content.length;
  const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const sequence = (...parts) => der(0x30, ...parts);
const oid = (hex) => der(0x06, Buffer.from(hex, 'hex'));
const time = (date) => der(0x17, Buffer.from(date.toISOString().slice(2).replace(/[-:T]|\.\d+/g, ''))); // 260102030405Z

const ecdsaWithSHA256 = () => sequence(oid('2a8648ce3d040302'));
const commonName = (name) => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))));

// selfSigned returns a new key (PEM) and a certificate of it for "localhost" (DER).
export function selfSigned(now = new Date()) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const serial = randomBytes(16);
  serial[0] = (serial[0] & 0x7f) | 0x40; // positive, and of one length
  const subjectAltName = sequence(sequence(oid('551d11'), der(0x04, sequence(der(0x82, Buffer.from('localhost'))))));
  const years = (n) => new Date(now.getTime() + n * 365 * 86_400_000);
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, serial),
    ecdsaWithSHA256(),
    commonName('localhost'),
    sequence(time(new Date(now.getTime() - 60_000)), time(years(10))),
    commonName('localhost'),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, subjectAltName),
  );
  const signature = sign('sha256', signed, { key: privateKey, dsaEncoding: 'der' });
  const certificate = sequence(signed, ecdsaWithSHA256(), der(0x03, Buffer.from([0]), signature));
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }), certificate };
}

// pem is a certificate as TLS libraries read it.
export function pem(certificate) {
  const lines = certificate.toString('base64').match(/.{1,64}/g).join('\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
