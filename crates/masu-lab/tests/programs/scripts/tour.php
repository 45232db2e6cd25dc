<?php
// Documents are parsed, changed and written by libxml2, texts by PHP itself: blocks of both mix.
$turns = (int) $argv[1];
$length = 0;
for ($turn = 0; $turn < $turns; $turn++) {
    $document = new DOMDocument();
    $document->loadXML('<rice>' . str_repeat('<box size="18">枡</box>', 500) . '</rice>');
    foreach ($document->getElementsByTagName('box') as $index => $box) {
        $box->setAttribute('index', str_repeat((string) $index, 10));
    }
    $text = $document->saveXML();
    preg_match_all('/index="(\d+)"/', $text, $found);
    $length += strlen($text) + count($found[1]) + strlen(json_encode($found));
}
echo "documents: $turns, $length\n";
