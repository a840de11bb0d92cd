#include "spent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sum.h"
#include "write.h"

/* More than anybody spends or any model reads; sums of it stay far from the end of int64. */
#define MOST_NANO ((int64_t) 1000000 * WEFT_NANO)
#define MOST_TOKENS ((int64_t) 1 << 48)

/* As the wire has them here, and as ACP says them. */
static const char *const token_names[WEFT_TOKEN_KINDS] = {"total",   "input",      "output",
                                                          "thought", "cachedRead", "cachedWrite"};
static const char *const reported_names[WEFT_TOKEN_KINDS] = {"totalTokens",   "inputTokens",      "outputTokens",
                                                             "thoughtTokens", "cachedReadTokens", "cachedWriteTokens"};

/* ---- money ---- */

static bool take_amount(double amount, int64_t *ret) {
    if (!(amount >= 0) || amount * WEFT_NANO > (double) MOST_NANO)
        return false;
    *ret = (int64_t) (amount * WEFT_NANO + 0.5);
    return true;
}

/* A name, so that it can be shown beside an amount whatever it is. */
static bool take_currency(const char *text, size_t len, char ret[WEFT_CURRENCY]) {
    if (!len || len >= WEFT_CURRENCY)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
            return false;
    memset(ret, 0, WEFT_CURRENCY);
    memcpy(ret, text, len);
    return true;
}

bool weft__money_read(const weft_json *value, weft_money *ret) {
    weft_json amount = weft_get(value, "amount"), currency = weft_get(value, "currency");
    weft_bytes name;
    return weft_typeof(&amount) == WEFT_NUMBER && weft_bytes_of(&currency, &name) >= 0 &&
           take_amount(weft_num_of(&amount, -1), &ret->nano) && take_currency(name.data, name.len, ret->currency);
}

bool weft__money_parse(const char *text, weft_money *ret) {
    size_t digits = strspn(text, "0123456789."), space = strspn(text + digits, " ");
    char amount[24], *end;
    if (!digits || digits >= sizeof amount || strspn(text, ".") == digits)
        return false;
    memcpy(amount, text, digits);
    amount[digits] = '\0';
    double value = strtod(amount, &end);
    const char *name = text + digits + space;
    return !*end && space && take_amount(value, &ret->nano) && take_currency(name, strlen(name), ret->currency);
}

const char *weft__money_text(int64_t nano, char ret[WEFT_MONEY_TEXT]) {
    int len = snprintf(ret, WEFT_MONEY_TEXT, "%lld.%09lld", (long long) (nano / WEFT_NANO), (long long) (nano % WEFT_NANO));
    while (len > 0 && ret[len - 1] == '0')
        len--;
    if (len > 0 && ret[len - 1] == '.')
        len--;
    ret[len] = '\0';
    return ret;
}

weft_money weft__money_since(const weft_money *now, const weft_money *before) {
    weft_money since = *now;
    if (strcmp(now->currency, before->currency) == 0 && now->nano >= before->nano)
        since.nano -= before->nano;
    return since;
}

/* ---- sums ---- */

static bool add_money(weft_spent *spent, const weft_money *money) {
    for (size_t i = 0; i < WEFT_CURRENCIES; i++) {
        weft_money *sum = &spent->cost[i];
        if (!*sum->currency)
            memcpy(sum->currency, money->currency, sizeof sum->currency);
        else if (strcmp(sum->currency, money->currency) != 0)
            continue;
        sum->nano = weft__add_ms(sum->nano, money->nano);
        return true;
    }
    return false;
}

/* Without a total, what went in and came out is one. */
static bool add_tokens(weft_spent *spent, const weft_json *tokens) {
    int64_t said[WEFT_TOKEN_KINDS];
    for (size_t i = 0; i < WEFT_TOKEN_KINDS; i++) {
        said[i] = weft_get_int(tokens, reported_names[i], -1);
        said[i] = said[i] > MOST_TOKENS ? -1 : said[i];
    }
    int64_t input = said[WEFT_TOKENS_INPUT], output = said[WEFT_TOKENS_OUTPUT];
    if (said[WEFT_TOKENS_TOTAL] < 0 && input >= 0 && output >= 0)
        said[WEFT_TOKENS_TOTAL] = input + output;
    if (said[WEFT_TOKENS_TOTAL] < 0)
        return false;
    for (size_t i = 0; i < WEFT_TOKEN_KINDS; i++)
        if (said[i] >= 0) {
            spent->tokens[i] = weft__add_ms(spent->tokens[i], said[i]);
            spent->said |= UINT64_C(1) << i;
        }
    return true;
}

void weft__spent_turn(weft_spent *spent, const weft_json *usage) {
    weft_money money;
    spent->turns++;
    if (!usage->text) { /* of most agents nothing is known */
        spent->tokens_unknown++;
        spent->cost_unknown++;
        return;
    }
    weft_json tokens = weft_get(usage, "tokens"), cost = weft_get(usage, "cost");
    spent->tokens_unknown += !add_tokens(spent, &tokens);
    spent->cost_unknown += !weft__money_read(&cost, &money) || !add_money(spent, &money);
}

void weft__spent_add(weft_spent *spent, const weft_spent *more) {
    bool all = true;
    for (size_t i = 0; i < WEFT_CURRENCIES && *more->cost[i].currency; i++)
        all = add_money(spent, &more->cost[i]) && all;
    for (size_t i = 0; i < WEFT_TOKEN_KINDS; i++)
        spent->tokens[i] = weft__add_ms(spent->tokens[i], more->tokens[i]);
    spent->said |= more->said;
    spent->turns += more->turns;
    spent->tokens_unknown += more->tokens_unknown;
    spent->cost_unknown += all ? more->cost_unknown : more->turns;
}

int64_t weft__spent_in(const weft_spent *spent, const char *currency) {
    for (size_t i = 0; i < WEFT_CURRENCIES; i++)
        if (*currency && strcmp(spent->cost[i].currency, currency) == 0)
            return spent->cost[i].nano;
    return 0;
}

/* ---- as JSON ---- */

int weft__spent_write(const weft_spent *spent, const weft_alloc *alloc, weft_buf *out) {
    weft_member tokens[WEFT_TOKEN_KINDS], money[WEFT_CURRENCIES][2];
    weft_val cost[WEFT_CURRENCIES];
    char amounts[WEFT_CURRENCIES][WEFT_MONEY_TEXT];
    size_t count = 0;
    for (size_t i = 0; i < WEFT_TOKEN_KINDS; i++)
        tokens[i] = (weft_member){token_names[i], spent->said & UINT64_C(1) << i ? weft_int(spent->tokens[i]) : weft_null()};
    for (; count < WEFT_CURRENCIES && *spent->cost[count].currency; count++) {
        const char *amount = weft__money_text(spent->cost[count].nano, amounts[count]);
        money[count][0] = (weft_member){"amount", weft_raw(amount, strlen(amount))};
        money[count][1] = (weft_member){"currency", weft_str(spent->cost[count].currency)};
        cost[count] = weft_obj(money[count], 2);
    }
    bool known = spent->tokens_unknown < spent->turns;
    weft_val value =
        WEFT_OBJ({"turns", weft_int(spent->turns)}, {"tokens", known ? weft_obj(tokens, WEFT_TOKEN_KINDS) : weft_null()},
                 {"tokensUnknown", weft_int(spent->tokens_unknown)}, {"cost", weft_arr(cost, count)},
                 {"costUnknown", weft_int(spent->cost_unknown)});
    return weft__write_val(out, alloc, &value);
}

void weft__spent_read(weft_spent *ret, const weft_json *value) {
    weft_json tokens = weft_get(value, "tokens"), cost = weft_get(value, "cost");
    *ret = (weft_spent){0};
    ret->turns = weft__clamp(weft_get_int(value, "turns", 0), 0, MOST_TOKENS);
    ret->tokens_unknown = weft__clamp(weft_get_int(value, "tokensUnknown", 0), 0, ret->turns);
    ret->cost_unknown = weft__clamp(weft_get_int(value, "costUnknown", 0), 0, ret->turns);
    for (size_t i = 0; i < WEFT_TOKEN_KINDS; i++) {
        int64_t is = weft_get_int(&tokens, token_names[i], -1);
        ret->tokens[i] = weft__clamp(is, 0, INT64_MAX / 2);
        ret->said |= is >= 0 ? UINT64_C(1) << i : 0;
    }
    weft_money money;
    for (weft_iter it = weft_iterate(&cost); weft_next(&it);)
        if (weft__money_read(&it.value, &money))
            add_money(ret, &money);
}
