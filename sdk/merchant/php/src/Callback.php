<?php
declare(strict_types=1);

namespace Gerbang;

/** The callback is not Gerbang's, or too old: answer 400 and do nothing. */
final class CallbackError extends \RuntimeException
{
}

/** A verified callback. One whose id was seen is done. */
final class Callback
{
    public function __construct(
        public readonly string $id,
        public readonly string $event, // payments.status_update, ...
        public readonly array $data,   // for the type of the event: PaymentEventData::from($data), ...
    ) {
    }

    /**
     * Checks the Standard Webhooks signature of the received bytes, by any of the secrets: two
     * while a secret is rotated.
     *
     * @param array<string, string> $headers getallheaders()
     * @param string                $body    file_get_contents('php://input')
     */
    public static function verify(array $headers, string $body, #[\SensitiveParameter] string ...$secrets): self
    {
        $headers = array_change_key_case($headers);
        $id = $headers['webhook-id'] ?? '';
        $timestamp = $headers['webhook-timestamp'] ?? '';
        if ($id === '' || !ctype_digit($timestamp) || abs(time() - (int) $timestamp) > 300) {
            throw new CallbackError('the callback is not verified');
        }
        foreach ($secrets as $secret) {
            $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
            if ($key === false || $key === '') {
                continue;
            }
            $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
            foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
                $told = hash_equals($want, $given) ? json_decode($body, true) : null;
                if (is_array($told)) {
                    return new self($id, $told['event'] ?? '', $told['data'] ?? []);
                }
            }
        }
        throw new CallbackError('the callback is not verified');
    }
}
