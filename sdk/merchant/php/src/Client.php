<?php
declare(strict_types=1);

namespace Gerbang;

/**
 * The answer to a call.
 *
 * @template T
 */
final class Answer
{
    /** @param T $data */
    public function __construct(
        public readonly mixed $data,
        public readonly string $message,   // where the call has one
        public readonly string $requestId, // to quote when asking about a request
        public readonly bool $replayed,    // an earlier request under this reference was answered so
    ) {
    }

    public function with(mixed $data): self
    {
        return new self($data, $this->message, $this->requestId, $this->replayed);
    }
}

/** What changes one call. */
final class Options
{
    public function __construct(
        // Where the end of what the call makes is told.
        public readonly ?string $callbackUrl = null,
        // The reference of a call whose request has none. Unless given, a call that moves money
        // gets a random one, so that its repetition is never a second one.
        public readonly ?string $idempotencyKey = null,
    ) {
    }
}

/** An error that the gateway tells. */
final class Refusal extends \RuntimeException
{
    public readonly string $errorCode;
    public readonly string $sent;  // no, refused or unknown
    public readonly string $retry; // never, after_change, later or lookup_first
    public readonly string $requestId;

    /** @param array $body the whole error: errors, retry_at, external_id, ... */
    public function __construct(public readonly array $body, public readonly int $status)
    {
        $this->errorCode = $body['error_code'];
        $this->sent = $body['sent'] ?? '';
        $this->retry = $body['retry'] ?? '';
        $this->requestId = $body['request_id'] ?? '';
        parent::__construct("{$this->errorCode}: " . ($body['message'] ?? '') . " (sent: {$this->sent}, retry: {$this->retry}, request {$this->requestId})");
    }
}

/**
 * No answer came. Whether the call was carried out is not known: call again with the same
 * reference, which never makes a second.
 */
final class NoAnswer extends \RuntimeException
{
    public function __construct(public readonly string $reference, string $cause)
    {
        parent::__construct("no answer: $cause");
    }
}

/** Calls the API with one key. */
final class Client extends Operations
{
    /**
     * @param float $timeout     bounds each wait for the server in one attempt, in seconds; longer than any call takes
     * @param int   $retries     how often a call is repeated where that is safe
     * @param float $longestWait bounds the wait before a repetition, in seconds
     */
    public function __construct(
        private readonly string $baseUrl,
        #[\SensitiveParameter] private readonly string $key,
        private readonly string $merchantId,
        private readonly float $timeout = 60,
        private readonly int $retries = 2,
        private readonly float $longestWait = 30,
    ) {
    }

    /**
     * Makes a call and repeats it where that is safe: when no answer came, and when the error
     * says that the same request may be sent again and waiting a moment can help.
     */
    protected function send(string $path, bool $money, array $request, Options $options): Answer
    {
        $request = array_filter($request, static fn ($value) => $value !== null && $value !== []);
        if ($this->merchantId !== '') {
            $request['merchant_id'] = $this->merchantId;
        }
        $headers = ["Authorization: Bearer {$this->key}", 'Content-Type: application/json', 'Connection: close'];
        if ($options->callbackUrl !== null) {
            $headers[] = "X-Callback-URL: {$options->callbackUrl}";
        }
        $own = $request['refund_id'] ?? $request['external_id'] ?? $request['ref_id'] ?? ''; // a refund names its payment, too
        $key = $options->idempotencyKey ?? ($money && $own === '' ? bin2hex(random_bytes(16)) : '');
        if ($key !== '') {
            $headers[] = "Idempotency-Key: $key";
        }
        $reference = $own !== '' ? $own : $key;
        $body = json_encode((object) $request, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);

        for ($attempt = 0; ; $attempt++) {
            [$status, $told, $text, $fault] = $this->post($path, $headers, $body);
            $answer = json_decode($text, true);
            if ($status === 200 && ($answer['success'] ?? false) === true) {
                return new Answer($answer['data'], $answer['message'] ?? '', $told['x-request-id'] ?? '', ($told['idempotent-replayed'] ?? '') === 'true');
            }
            if (is_string($answer['error_code'] ?? null)) {
                $failure = new Refusal($answer, $status);
                $wait = self::helps($failure, $told, $attempt);
            } else {
                $failure = new NoAnswer($reference, $fault !== '' ? $fault : "HTTP $status that is not Gerbang's");
                $wait = self::pause($attempt);
            }
            if ($wait === 0.0 || $wait > $this->longestWait || $attempt >= $this->retries) {
                throw $failure;
            }
            usleep((int) ($wait * 1e6));
        }
    }

    /** @return array{int, array<string, string>, string, string} status, headers, body, what went wrong */
    private function post(string $path, array $headers, string $body): array
    {
        $context = stream_context_create(['http' => [
            'method' => 'POST', 'header' => $headers, 'content' => $body, 'timeout' => $this->timeout,
            'ignore_errors' => true, 'follow_location' => 0, 'protocol_version' => 1.1,
        ]]);
        $stream = @fopen(rtrim($this->baseUrl, '/') . $path, 'rb', false, $context);
        if ($stream === false) {
            return [0, [], '', error_get_last()['message'] ?? 'the connection failed'];
        }
        $text = (string) stream_get_contents($stream);
        $about = stream_get_meta_data($stream);
        fclose($stream);
        if ($about['timed_out']) {
            return [0, [], '', 'the answer did not come in time'];
        }
        $status = 0;
        $told = [];
        foreach ($about['wrapper_data'] as $line) {
            if (preg_match('{^HTTP/\S+ (\d{3})}', $line, $found)) {
                $status = (int) $found[1];
            } elseif (str_contains($line, ':')) {
                [$name, $value] = explode(':', $line, 2);
                $told[strtolower($name)] = trim($value);
            }
        }
        return [$status, $told, $text, ''];
    }

    /** How many seconds to wait before the same request is sent again, 0 for never. */
    private static function helps(Refusal $refusal, array $told, int $attempt): float
    {
        if ($refusal->retry !== 'later' && $refusal->retry !== 'lookup_first') {
            return 0.0;
        }
        if (ctype_digit($told['retry-after'] ?? '')) {
            // retry_at tells the real time, where that is hours away.
            $until = isset($refusal->body['retry_at']) ? strtotime($refusal->body['retry_at']) - microtime(true) : 0;
            return max((float) $told['retry-after'], $until, 0.001);
        }
        return $refusal->status === 500 ? self::pause($attempt) : 0.0; // else what stands in the way is not gone in a moment
    }

    /** 0.5, 1, 2 ... seconds. */
    private static function pause(int $attempt): float
    {
        return 0.5 * 2 ** min($attempt, 6);
    }
}
