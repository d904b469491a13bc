<?php
// How a merchant's server verifies a callback, with PHP's own functions alone:
// take verify_svc or verify_webhook. Either is enough to know where a callback
// comes from; verify_webhook also refuses what is older than five minutes, and
// remember the webhook-id to recognise a repetition.
//
//   CALLBACK_SECRET=whsec_... php verify.php HEADERS-FILE BODY-FILE
//
// During a rotation CALLBACK_SECRET holds both secrets, with a space between.
declare(strict_types=1);

// $headers: lower-case names, e.g. array_change_key_case(getallheaders()).
// $body: the bytes that came, file_get_contents('php://input').

// The key is the whole secret, whsec_ included.
function verify_svc(array $headers, string $body, array $secrets): bool
{
    foreach ($secrets as $secret) {
        if (hash_equals(hash_hmac('sha256', $body, $secret), $headers['x-svc-signature'] ?? '')) {
            return true;
        }
    }
    return false;
}

// The key is the part after whsec_, decoded.
function verify_webhook(array $headers, string $body, array $secrets, int $now): bool
{
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if ($id === '' || !ctype_digit($timestamp) || abs($now - (int) $timestamp) > 300) {
        return false;
    }
    foreach ($secrets as $secret) {
        $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
        if ($key === false || $key === '') {
            continue;
        }
        $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
        foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
            if (hash_equals($want, $given)) {
                return true;
            }
        }
    }
    return false;
}

$secrets = preg_split('/ /', (string) getenv('CALLBACK_SECRET'), -1, PREG_SPLIT_NO_EMPTY);
if ($argc !== 3 || $secrets === []) {
    fwrite(STDERR, "usage: CALLBACK_SECRET=whsec_... php verify.php HEADERS-FILE BODY-FILE\n");
    exit(2);
}
$headers = [];
foreach (file($argv[1], FILE_IGNORE_NEW_LINES) as $line) {
    [$name, $value] = explode(':', $line, 2) + [1 => ''];
    $headers[strtolower($name)] = trim($value);
}
$body = file_get_contents($argv[2]);
$svc = verify_svc($headers, $body, $secrets);
$webhook = verify_webhook($headers, $body, $secrets, time());
echo 'X-Svc-Signature: ', $svc ? 'right' : 'wrong', "\n";
echo 'webhook-signature: ', $webhook ? 'right' : 'wrong', "\n";
exit($svc && $webhook ? 0 : 1);
