/* The formats of both drafts (section 7.3 of the validation specification), each by the RFC it names. A text may hold any
 * byte of UTF-8, NUL included.
 *
 * Names that are not ASCII (idn-email, iri, ...) are taken as they are: whether a character may be part of one is not asked.
 */
#include "format.h"

#include <string.h>

#include "pattern_private.h"

/* What is left of a text. Each take_... moves behind what it takes, or says that it is not there. */
typedef struct rest {
    const char *p, *end;
} rest;

static bool is_digit(char c) {
    return (unsigned char) (c - '0') < 10;
}

static bool is_alpha(char c) {
    return (unsigned char) ((c | 0x20) - 'a') < 26;
}

static bool is_hex(char c) {
    return is_digit(c) || (unsigned char) ((c | 0x20) - 'a') < 6;
}

static bool is_one_of(char c, const char *set) {
    return c && strchr(set, c);
}

static bool at_end(const rest *t) {
    return t->p == t->end;
}

static bool take_char(rest *t, char c) {
    bool there = t->p < t->end && *t->p == c;
    t->p += there;
    return there;
}

static bool take_either(rest *t, char a, char b) {
    return take_char(t, a) || take_char(t, b);
}

/* Exactly so many digits. */
static bool take_digits(rest *t, int count, int *ret) {
    int n = 0;
    if (t->end - t->p < count)
        return false;
    for (int i = 0; i < count; i++, t->p++) {
        if (!is_digit(*t->p))
            return false;
        n = n * 10 + (*t->p - '0');
    }
    *ret = n;
    return true;
}

static size_t skip_digits(rest *t) {
    const char *from = t->p;
    while (t->p < t->end && is_digit(*t->p))
        t->p++;
    return (size_t) (t->p - from);
}

/* ---- dates and times, RFC 3339 ---- */

static int days_of_month(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool take_date(rest *t) {
    int year, month, day;
    return take_digits(t, 4, &year) && take_char(t, '-') && take_digits(t, 2, &month) && month >= 1 && month <= 12 &&
           take_char(t, '-') && take_digits(t, 2, &day) && day >= 1 && day <= days_of_month(year, month);
}

/* Z or +hh:mm; minutes to the east. */
static bool take_offset(rest *t, int *ret) {
    int hours, minutes;
    *ret = 0;
    if (take_either(t, 'Z', 'z'))
        return true;
    bool west = t->p < t->end && *t->p == '-';
    if (!take_either(t, '+', '-') || !take_digits(t, 2, &hours) || !take_char(t, ':') || !take_digits(t, 2, &minutes))
        return false;
    *ret = (west ? -1 : 1) * (hours * 60 + minutes);
    return hours <= 23 && minutes <= 59;
}

/* A leap second is one where it is 23:59 in UTC. */
static bool take_time(rest *t) {
    int hour, minute, second, offset;
    bool there = take_digits(t, 2, &hour) && hour <= 23 && take_char(t, ':') && take_digits(t, 2, &minute) && minute <= 59 &&
                 take_char(t, ':') && take_digits(t, 2, &second) && second <= 60;
    if (!there || (take_char(t, '.') && !skip_digits(t)) || !take_offset(t, &offset))
        return false;
    int utc = (hour * 60 + minute - offset + 2 * 24 * 60) % (24 * 60);
    return second < 60 || utc == 23 * 60 + 59;
}

static bool is_date(const char *text, size_t len) {
    rest t = {text, text + len};
    return take_date(&t) && at_end(&t);
}

static bool is_time(const char *text, size_t len) {
    rest t = {text, text + len};
    return take_time(&t) && at_end(&t);
}

static bool is_date_time(const char *text, size_t len) {
    rest t = {text, text + len};
    return take_date(&t) && take_either(&t, 'T', 't') && take_time(&t) && at_end(&t);
}

/* Numbers with units in this order and none between them left out; how many. -1: something else. */
static int take_units(rest *t, const char *units) {
    int count = 0;
    while (t->p < t->end && *t->p != 'T') {
        const char *unit;
        if (!skip_digits(t) || at_end(t) || !*t->p || !(unit = strchr(units, *t->p)))
            return -1;
        if (count && unit != units)
            return -1;
        units = unit + 1;
        t->p++;
        count++;
    }
    return count;
}

/* RFC 3339 appendix A. */
static bool is_duration(const char *text, size_t len) {
    rest t = {text, text + len};
    if (!take_char(&t, 'P') || at_end(&t))
        return false;
    const char *weeks = t.p;
    if (skip_digits(&t) && take_char(&t, 'W'))
        return at_end(&t);
    t.p = weeks;
    if (take_units(&t, "YMD") < 0)
        return false;
    return at_end(&t) || (take_char(&t, 'T') && take_units(&t, "HMS") > 0 && at_end(&t));
}

/* ---- hosts and addresses ---- */

static bool is_ipv4(const char *text, size_t len) {
    rest t = {text, text + len};
    for (int i = 0; i < 4; i++) {
        int n = 0;
        const char *from = t.p;
        size_t digits = skip_digits(&t);
        for (const char *p = from; digits <= 3 && p < t.p; p++)
            n = n * 10 + (*p - '0');
        if (digits < 1 || digits > 3 || n > 255 || (digits > 1 && *from == '0') || (i < 3 && !take_char(&t, '.')))
            return false;
    }
    return at_end(&t);
}

static size_t skip_hex(rest *t) {
    const char *from = t->p;
    while (t->p < t->end && is_hex(*t->p))
        t->p++;
    return (size_t) (t->p - from);
}

/* RFC 4291 section 2.2: eight groups, one gap for some of them, the last two maybe as IPv4. */
static bool is_ipv6(const char *text, size_t len) {
    rest t = {text, text + len};
    int groups = 0;
    bool gap = false;
    if (len >= 2 && text[0] == ':' && text[1] != ':')
        return false;
    while (t.p < t.end) {
        if (t.end - t.p >= 2 && t.p[0] == ':' && t.p[1] == ':') {
            if (gap)
                return false;
            gap = true;
            t.p += 2;
            continue;
        }
        if (t.p > text && t.p[-1] != ':' && !take_char(&t, ':'))
            return false;
        if (is_ipv4(t.p, (size_t) (t.end - t.p)))
            return groups + 2 == 8 || (gap && groups + 2 < 8);
        size_t digits = skip_hex(&t);
        if (digits < 1 || digits > 4 || ++groups > 8)
            return false;
    }
    return gap ? groups < 8 : groups == 8;
}

/* RFC 1123 section 2.1; labels of at most 63, all of at most 253. A label "xn--..." has at least one character behind that.
 */
static bool is_hostname(const char *text, size_t len) {
    const char *end = text + len;
    if (!len || len > 253)
        return false;
    for (const char *p = text; p <= end;) {
        const char *dot = memchr(p, '.', (size_t) (end - p)), *stop = dot ? dot : end;
        size_t n = (size_t) (stop - p);
        if (n < 1 || n > 63 || *p == '-' || stop[-1] == '-')
            return false;
        if (n >= 4 && p[2] == '-' && p[3] == '-' && !(n > 4 && (p[0] | 0x20) == 'x' && (p[1] | 0x20) == 'n'))
            return false;
        for (; p < stop; p++)
            if (!is_alpha(*p) && !is_digit(*p) && *p != '-')
                return false;
        p = stop + 1;
        if (!dot)
            break;
        if (p == end)
            return false;
    }
    return true;
}

/* ---- mail, RFC 5321 section 4.1.2 ---- */

static bool is_quoted_local(const char *p, const char *end) {
    for (p++; p < end - 1; p++) {
        if (*p == '"')
            return false;
        if (*p == '\\' && ++p == end - 1)
            return false;
        if ((unsigned char) *p < ' ' || *p == 127)
            return false;
    }
    return true;
}

static bool is_dot_local(const char *p, const char *end, bool international) {
    if (p == end || *p == '.' || end[-1] == '.')
        return false;
    for (; p < end; p++) {
        if (*p == '.' && p[1] == '.')
            return false;
        bool plain = is_alpha(*p) || is_digit(*p) || is_one_of(*p, ".!#$%&'*+-/=?^_`{|}~");
        if (!plain && !(international && (unsigned char) *p >= 0x80))
            return false;
    }
    return true;
}

static bool is_mail_domain(const char *p, size_t len, bool international) {
    if (len > 2 && p[0] == '[' && p[len - 1] == ']') {
        bool v6 = len > 7 && memcmp(p + 1, "IPv6:", 5) == 0;
        return v6 ? is_ipv6(p + 6, len - 7) : is_ipv4(p + 1, len - 2);
    }
    if (international)
        for (size_t i = 0; i < len; i++)
            if ((unsigned char) p[i] >= 0x80)
                return true;
    return is_hostname(p, len);
}

static bool is_mail(const char *text, size_t len, bool international) {
    const char *end = text + len, *at = memrchr(text, '@', len);
    if (!at || at == text)
        return false;
    bool quoted = *text == '"' && at - text >= 2 && at[-1] == '"';
    bool local = quoted ? is_quoted_local(text, at) : is_dot_local(text, at, international);
    return local && is_mail_domain(at + 1, (size_t) (end - at) - 1, international);
}

static bool is_email(const char *text, size_t len) {
    return is_mail(text, len, false);
}

static bool is_idn_email(const char *text, size_t len) {
    return is_mail(text, len, true);
}

/* ---- URIs, RFC 3986, and IRIs, RFC 3987 ---- */

/* Characters of a part of a URI: unreserved, sub-delims, percent-encoded, and these. */
static bool are_uri_chars(const char *p, const char *end, const char *also, bool international) {
    for (; p < end; p++) {
        if (*p == '%') {
            if (end - p < 3 || !is_hex(p[1]) || !is_hex(p[2]))
                return false;
            p += 2;
        } else if ((unsigned char) *p >= 0x80) {
            if (!international)
                return false;
        } else if (!is_alpha(*p) && !is_digit(*p) && !is_one_of(*p, "-._~!$&'()*+,;=") && !is_one_of(*p, also)) {
            return false;
        }
    }
    return true;
}

static const char *find_any(const char *p, const char *end, const char *stops) {
    while (p < end && !is_one_of(*p, stops))
        p++;
    return p;
}

static bool is_literal_host(const char *p, const char *end, bool international) {
    const char *dot;
    if ((*p | 0x20) != 'v')
        return is_ipv6(p, (size_t) (end - p));
    rest t = {p + 1, end};
    dot = skip_hex(&t) ? t.p : NULL;
    return dot && dot + 1 < end && *dot == '.' && are_uri_chars(dot + 1, end, ":", international);
}

static bool is_authority(const char *p, const char *end, bool international) {
    const char *at = memrchr(p, '@', (size_t) (end - p));
    if (at && !are_uri_chars(p, at, ":", international))
        return false;
    p = at ? at + 1 : p;
    if (p < end && *p == '[') {
        const char *close = memchr(p, ']', (size_t) (end - p));
        if (!close || !is_literal_host(p + 1, close, international))
            return false;
        p = close + 1;
        if (p < end && *p != ':')
            return false;
    } else {
        const char *colon = find_any(p, end, ":");
        if (!are_uri_chars(p, colon, "", international))
            return false;
        p = colon;
    }
    rest t = {p < end ? p + 1 : p, end};
    skip_digits(&t);
    return at_end(&t);
}

static const char *skip_scheme(const char *p, const char *end) {
    const char *q = p;
    if (p == end || !is_alpha(*p))
        return NULL;
    while (q < end && (is_alpha(*q) || is_digit(*q) || is_one_of(*q, "+-.")))
        q++;
    return q < end && *q == ':' ? q + 1 : NULL;
}

static bool is_reference(const char *text, size_t len, bool absolute, bool international) {
    const char *p = text, *end = text + len, *behind = skip_scheme(p, end);
    if (!behind && (absolute || memchr(p, ':', (size_t) (find_any(p, end, "/?#") - p))))
        return false;
    p = behind ? behind : p;
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        const char *stop = find_any(p + 2, end, "/?#");
        if (!is_authority(p + 2, stop, international))
            return false;
        p = stop;
    }
    const char *query = find_any(p, end, "?#"), *fragment = find_any(query, end, "#");
    if (!are_uri_chars(p, query, ":@/", international))
        return false;
    if (query < fragment && !are_uri_chars(query + 1, fragment, ":@/?", international))
        return false;
    return fragment == end || are_uri_chars(fragment + 1, end, ":@/?", international);
}

static bool is_uri(const char *text, size_t len) {
    return is_reference(text, len, true, false);
}

static bool is_uri_reference(const char *text, size_t len) {
    return is_reference(text, len, false, false);
}

static bool is_iri(const char *text, size_t len) {
    return is_reference(text, len, true, true);
}

static bool is_iri_reference(const char *text, size_t len) {
    return is_reference(text, len, false, true);
}

/* RFC 6570 section 2.3: names are parted by single dots. */
static bool take_varname(rest *t) {
    const char *from = t->p;
    while (t->p < t->end && (is_alpha(*t->p) || is_digit(*t->p) || is_one_of(*t->p, "_.%"))) {
        if (*t->p == '%' && (t->end - t->p < 3 || !is_hex(t->p[1]) || !is_hex(t->p[2])))
            return false;
        if (*t->p == '.' && (t->p == from || t->p[-1] == '.'))
            return false;
        t->p++;
    }
    return t->p > from && t->p[-1] != '.';
}

/* Section 2.4: "*", or a length from 1 to 9999. */
static bool take_modifier(rest *t) {
    if (take_char(t, '*') || !take_char(t, ':'))
        return true;
    const char *from = t->p;
    size_t digits = skip_digits(t);
    return digits >= 1 && digits <= 4 && *from != '0';
}

/* Section 2.2: what is between braces, p behind the opening one. The byte behind the closing one, or NULL. */
static const char *skip_expression(const char *p, const char *end) {
    const char *close = memchr(p, '}', (size_t) (end - p));
    if (!close)
        return NULL;
    rest t = {p + (p < close && is_one_of(*p, "+#./;?&=,!@|")), close};
    do {
        if (!take_varname(&t) || !take_modifier(&t))
            return NULL;
    } while (take_char(&t, ','));
    return at_end(&t) ? close + 1 : NULL;
}

static bool is_uri_template(const char *text, size_t len) {
    const char *p = text, *end = text + len;
    while (p && p < end) {
        if (*p == '{')
            p = skip_expression(p + 1, end);
        else if ((unsigned char) *p <= ' ' || *p == 127 || is_one_of(*p, "\"<>\\^`|}"))
            return false;
        else
            p++;
    }
    return p;
}

/* ---- the rest ---- */

/* RFC 4122 section 3. */
static bool is_uuid(const char *text, size_t len) {
    if (len != 36)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_hex(text[i]))
            return false;
    }
    return true;
}

/* RFC 6901 section 3. */
static bool is_json_pointer(const char *text, size_t len) {
    if (len && text[0] != '/')
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '~' && (i + 1 == len || (text[i + 1] != '0' && text[i + 1] != '1')))
            return false;
    return true;
}

static bool is_relative_json_pointer(const char *text, size_t len) {
    rest t = {text, text + len};
    size_t digits = skip_digits(&t);
    if (!digits || (digits > 1 && text[0] == '0'))
        return false;
    return (t.end - t.p == 1 && *t.p == '#') || is_json_pointer(t.p, (size_t) (t.end - t.p));
}

/* As much as can be said without memory that lasts: it is compiled and thrown away. */
static bool is_regex(const char *text, size_t len) {
    weft_arena arena = {0};
    schema_patterns patterns = {0};
    const schema_pattern *pattern;
    const char *why;
    int r = weft__pattern_compile(&patterns, &arena, (weft_bytes){text, len}, &pattern, &why);
    weft__patterns_done(&patterns);
    weft__arena_done(&arena);
    return r >= 0;
}

static const struct {
    const char *name;
    schema_format *format;
} formats[] = {
    {"date-time", is_date_time},
    {"date", is_date},
    {"time", is_time},
    {"duration", is_duration},
    {"email", is_email},
    {"idn-email", is_idn_email},
    {"hostname", is_hostname},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"uri", is_uri},
    {"uri-reference", is_uri_reference},
    {"iri", is_iri},
    {"iri-reference", is_iri_reference},
    {"uri-template", is_uri_template},
    {"uuid", is_uuid},
    {"json-pointer", is_json_pointer},
    {"relative-json-pointer", is_relative_json_pointer},
    {"regex", is_regex},
};

schema_format *weft__format_find(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].format;
    return NULL;
}
