<?php
$answer = file_get_contents(getenv('API') . '/payments/create', false, stream_context_create(['http' => [
    'method' => 'POST',
    'ignore_errors' => true,
    'header' => ['Authorization: Bearer ' . getenv('KEY'), 'Content-Type: application/json'],
    'content' => json_encode([
        'merchant_id' => getenv('MERCHANT'), 'external_id' => uniqid('first-'),
        'amount' => 50000, 'payer_email' => 'payer@example.com', 'description' => 'First payment',
    ]),
]]));
echo $answer, "\n";
