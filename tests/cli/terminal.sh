#!/bin/bash
# What changes on a terminal: colours, indentation, the spinner, the progress bar, and that nothing steers it. script(1) lends one.
. "$(dirname "$0")/kit.bash"

if ! script -qec true /dev/null >/dev/null 2>&1; then
    skip "everything on a terminal" "script(1) of util-linux is not installed"
    passed=1 close
fi
export TERM=xterm-256color
escape=$'\x1b'

# Run with standard output and standard error on a terminal.
on_terminal() {
    run script -qec "$(printf '%q ' "$@")" /dev/null </dev/null
}

start "$weft" serve --listen "unix:$there/t.sock"
url=${urls[0]}

on_terminal "$weft" call "$url" echo a=1 's=text' 'l=[true,null,{}]'
like "names in colour" "${escape}[34m\"a\"${escape}[0m" "$out"
like "numbers in colour" "${escape}[36m1${escape}[0m" "$out"
like "strings in colour" "${escape}[32m\"text\"${escape}[0m" "$out"
like "words in colour" "${escape}[35mtrue${escape}[0m" "$out"
on_terminal env NO_COLOR=1 "$weft" call "$url" echo a=1 's=text' 'l=[true,{}]'
unlike "NO_COLOR is honoured" "$escape" "$out"
is "and indented all the same" '{
  "a": 1,
  "s": "text",
  "l": [
    true,
    {}
  ]
}' "$(tr -d '\r' <<<"$out")"
on_terminal env NO_COLOR= "$weft" call "$url" echo a=1
like "an empty NO_COLOR is none" "$escape" "$out"
on_terminal env TERM=dumb "$weft" call "$url" echo a=1
unlike "a dumb terminal has no colours" "$escape" "$out"
on_terminal env NO_COLOR=1 "$weft" call --json "$url" echo a=1
is "--json is one line" '{"a":1}' "$(tr -d '\r' <<<"$out")"
on_terminal "$weft" call "$url" nothing
like "mistakes in colour" "${escape}[31mweft call:" "$out"

# ---- text of the other side does not steer the terminal ----
cat >hostile <<'END'
#!/bin/bash
read -r line
cat answer
END
chmod +x hostile
steered() { # NAME HIDDEN-BYTES SHOWN-AS
    printf '{"jsonrpc":"2.0","id":1,"result":{"k":"<%s>"}}\n' "$2" >answer
    on_terminal env NO_COLOR=1 "$weft" call exec:./hostile m
    unlike "$1 does not get through" "$2" "$out"
    like "$1 is shown" "<$3>" "$out"
    run "$weft" call exec:./hostile m
    like "$1 stays what it is where there is no terminal" "<$2>" "$out"
}
steered "DEL" $'\x7f' '\u007f'
steered "CSI as one character" $'\xc2\x9b' '\u009b'
steered "right-to-left override" $'\xe2\x80\xae' '\u202e'
echo '{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"a\u001b]0;title\u0007b","data":"\u001b[2J"}}' >answer
on_terminal env NO_COLOR=1 "$weft" call exec:./hostile m
unlike "an error's message does not steer either" "$escape" "$out"
like "and is shown" 'a\u001b]0;title\u0007b' "$out"

# ---- signs of life ----
on_terminal "$weft" call --timeout 400ms 'exec:sleep 30' slow
like "a spinner" "⠋ slow" "$out"
like "which is taken away" $'\r'"${escape}[K" "$out"
run "$weft" call --timeout 300ms 'exec:sleep 30' slow
unlike "no spinner where there is no terminal" "⠋" "$out$err"
on_terminal env NO_COLOR=1 TERM=dumb "$weft" call --timeout 300ms 'exec:sleep 30' slow
unlike "no spinner on a dumb one" "⠋" "$out"
on_terminal "$weft" bench -c 1 -d 300ms "$url"
like "a progress bar" "left" "$out"
like "with the rate" "/s  " "$out"
like "and a histogram" "|" "$out"
run "$weft" bench -c 1 -d 300ms "$url"
is "no progress bar where there is no terminal" "" "$err"
close
