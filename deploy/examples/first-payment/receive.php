<?php
// php -S 0.0.0.0:3000 receive.php
$key = base64_decode(preg_replace('/^whsec_/', '', getenv('CALLBACK_SECRET')));
$headers = array_change_key_case(getallheaders());
$body = file_get_contents('php://input');

function verified(array $headers, string $body, string $key): bool
{
    $time = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($time) || abs(time() - (int) $time) > 300) {
        return false;
    }
    $id = $headers['webhook-id'] ?? '';
    $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$time.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
        if (hash_equals($want, $given)) {
            return true;
        }
    }
    return false;
}

$genuine = verified($headers, $body, $key);
http_response_code($genuine ? 204 : 401);
if ($genuine) {
    file_put_contents('php://stderr', $body . "\n");
}
