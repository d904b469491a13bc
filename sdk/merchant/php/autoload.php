<?php
// For those who do not use Composer.
require_once __DIR__ . '/src/Generated.php';
require_once __DIR__ . '/src/Client.php';
require_once __DIR__ . '/src/Callback.php';
