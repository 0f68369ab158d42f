# Completions of adit for bash. The candidates come from `adit complete`.
_adit() {
    local IFS=$'\n' adit word rest before='' cut='' line="${COMP_LINE:0:${COMP_POINT:-0}}"
    local i mark
    local -a words=() raw=()
    # bash splits words at `:`, `=` and `@`; parts without a blank between them are joined again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        rest="${line#"${line%%[![:space:]]*}"}"
        if ((i > 0)) && [[ -n ${COMP_LINE-} && $rest == "$line" ]]; then
            words[${#words[@]} - 1]+="$word"
        else
            words+=("$word")
        fi
        line="${rest#"$word"}"
    done
    i=$((${#words[@]} - 1))
    word="${words[i]}"
    case "$word" in
        [\'\"]*)
            # The open quote is not part of the word, and bash does not split words inside quotes.
            words[i]="${word:1}"
            raw=(--raw)
            ;;
        *)
            words[i]="${word//\\/}"
            for mark in : = @; do
                if [[ ${COMP_WORDBREAKS-} == *"$mark"* && -n ${COMP_LINE-} && $word == *"$mark"* ]]; then
                    before="${word%"${word##*"$mark"}"}"
                    ((${#before} > ${#cut})) && cut="$before"
                fi
            done
            ;;
    esac
    adit="${COMP_WORDS[0]/#\~/$HOME}"
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("${word#"$cut"}")
    done < <("$adit" complete --shell bash ${raw[@]+"${raw[@]}"} --index "$i" -- "${words[@]}" 2>/dev/null)
}

complete -o nospace -F _adit adit
