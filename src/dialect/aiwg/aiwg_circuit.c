/* Counting failures in a row. */
#include "aiwg_circuit.h"

int64_t weft__aiwg_circuit_left(const weft_aiwg_circuit *circuit, int64_t now) {
    int64_t until = circuit->opened + circuit->cooldown_ms;
    return circuit->open && now < until ? until - now : 0;
}

bool weft__aiwg_circuit_allows(weft_aiwg_circuit *circuit, int64_t now) {
    return !circuit->open || (!circuit->probing && weft__aiwg_circuit_left(circuit, now) == 0);
}

void weft__aiwg_circuit_begin(weft_aiwg_circuit *circuit, int64_t now) {
    if (circuit->open && weft__aiwg_circuit_left(circuit, now) == 0)
        circuit->probing = true;
}

bool weft__aiwg_circuit_failed(weft_aiwg_circuit *circuit, int64_t now) {
    bool was = circuit->open && !circuit->probing;
    circuit->failures++;
    circuit->probing = false;
    if (circuit->failures < circuit->threshold)
        return false;
    circuit->open = true;
    circuit->opened = now;
    return !was;
}

bool weft__aiwg_circuit_succeeded(weft_aiwg_circuit *circuit) {
    bool was = circuit->open;
    circuit->open = circuit->probing = false;
    circuit->failures = 0;
    return was;
}

void weft__aiwg_circuit_dropped(weft_aiwg_circuit *circuit) {
    circuit->probing = false;
}

const char *weft__aiwg_circuit_name(const weft_aiwg_circuit *circuit, int64_t now) {
    if (!circuit->open)
        return "closed";
    return circuit->probing || weft__aiwg_circuit_left(circuit, now) == 0 ? "half-open" : "open";
}
