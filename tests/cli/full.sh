#!/bin/bash
# A journal that may not grow, as on a full disk: what happens cannot be stored, but the daemon lives and says what is the
# matter.
. "$(dirname "$0")/hub.bash"

mkdir full
cd full || exit 1
(
    ulimit -f 100
    timeout 120 "$program" start >start.out 2>&1
)
weft task submit lines 5000
exits "the first task is taken" 0
has_trouble() {
    timeout 120 "$program" status | grep -q '^trouble   store: '
}
until_true has_trouble && pass
weft status
like "the status is not healthy" "degraded" "$out"
like "the log says so" "cannot be stored" "$(timeout 120 "$program" logs)"
weft doctor
exits "the doctor says so" 1
weft stop --force --timeout 1s
exits "it can be stopped" 0
weft start
exits "and started again" 0
weft task submit --wait echo fine
is "with more room it works" fine "$out"
close
