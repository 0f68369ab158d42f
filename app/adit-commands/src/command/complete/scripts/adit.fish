# Completions of adit for fish. The candidates come from `adit complete`.
function __adit_complete
    set -l words (commandline -opc)
    # An open quote is not part of the word.
    set -l current (commandline -ct | string replace -r '^[\'"]' '')
    $words[1] complete --shell fish --index (count $words) -- $words "$current" 2>/dev/null
end

complete -c adit -f -a '(__adit_complete)'
