#compdef adit
# Completions of adit for zsh. The candidates come from `adit complete`.
_adit() {
    local line value adit
    local -a whole whole_shown open open_shown
    adit="${(Q)words[1]}"
    for line in "${(@f)$(${~adit} complete --shell zsh --index $((CURRENT - 1)) -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value="${line%%$'\t'*}"
        # A candidate that ends like this is not complete yet: no blank follows it.
        if [[ $value == *[:/@=,] ]]; then
            open+=("$value")
            open_shown+=("${line/$'\t'/  -- }")
        else
            whole+=("$value")
            whole_shown+=("${line/$'\t'/  -- }")
        fi
    done
    ((${#whole})) && compadd -l -d whole_shown -a whole
    ((${#open})) && compadd -l -S '' -d open_shown -a open
    ((${#whole} + ${#open}))
}

if [[ ${funcstack[1]-} == _adit ]]; then
    _adit "$@"
else
    compdef _adit adit
fi
