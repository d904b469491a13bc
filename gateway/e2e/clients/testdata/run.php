<?php
// Does the tasks of standard input with the client, one after the other, and prints what
// came of each.
declare(strict_types=1);

require 'vendor/autoload.php';

use Gerbang\{Callback, CallbackError, Client, NoAnswer, Options, Refusal};

function done(array $task): array
{
    try {
        if (isset($task['verify'])) {
            $told = Callback::verify($task['verify']['headers'], base64_decode($task['verify']['body']), ...$task['verify']['secrets']);
            return ['callback' => $told];
        }
        $client = new Client($task['base_url'], $task['key'], $task['merchant_id'], $task['timeout_ms'] / 1000, $task['retries'], 5);
        $arguments = [];
        if (isset($task['request'])) {
            $class = (new ReflectionMethod($client, $task['call']))->getParameters()[0]->getType()->getName();
            $arguments[] = new $class(...$task['request']);
        }
        $arguments[] = new Options($task['options']['callback_url'] ?? null, $task['options']['idempotency_key'] ?? null);
        $answer = $client->{$task['call']}(...$arguments);
        return ['data' => $answer->data, 'message' => $answer->message, 'request_id' => $answer->requestId, 'replayed' => $answer->replayed];
    } catch (Refusal $refusal) {
        return ['error' => ['error_code' => $refusal->errorCode, 'sent' => $refusal->sent, 'retry' => $refusal->retry]];
    } catch (NoAnswer $none) {
        return ['no_answer' => $none->reference];
    } catch (CallbackError) {
        return ['unverified' => true];
    }
}

echo json_encode(array_map(done(...), json_decode(stream_get_contents(STDIN), true)), JSON_THROW_ON_ERROR);
