# A public header as a manual page of section 3: awk -v name=weft_net -v header=net.h -f tools/man3.awk include/weft/net.h
# Comments become text, a comment of dashes a heading, and what stands between them is shown as it is.
function escape(line) {
    gsub(/─/, "-", line) # groff reads ASCII
    gsub(/▶/, ">", line)
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    return line ~ /^[.']/ ? "\\&" line : line
}
function show_code(line) {
    if (!code)
        print ".PP\n.nf\n.ft CR"
    code = 1
    print escape(line)
}
function end_code() {
    if (code)
        print ".ft\n.fi"
    code = 0
}
# Text that is set in is shown as it is.
function show_text(line) {
    if (line ~ /^  /) {
        if (!example)
            print ".PP\n.nf"
        example = 1
    } else if (example) {
        print ".fi"
        example = 0
    }
    print line == "" ? ".PP" : escape(line)
}
function end_text() {
    if (example)
        print ".fi"
    example = 0
}
BEGIN {
    printf ".TH %s 3\n.SH NAME\n", toupper(name)
}
/^#(ifndef|define|endif|ifdef|include|else|elif|if)/ && !told { next }
!told && /^\/\*/ { head = 1 }
head {
    line = $0
    last = line ~ /\*\/ *$/
    sub(/^\/\* ?/, "", line)
    sub(/^ \* ?/, "", line)
    sub(/ *\*\/ *$/, "", line)
    if (!named) {
        first = line
        sub(/[:.].*/, "", first)
        printf "%s \\- %s\n.SH SYNOPSIS\n.nf\n#include <weft/%s>\n.sp\ncc ... $(pkg\\-config \\-\\-cflags \\-\\-libs weft)\n.fi\n.SH DESCRIPTION\n", name, escape(first), header
        named = 1
    }
    show_text(line)
    if (last) {
        end_text()
        head = 0
        told = 1
    }
    next
}
!told { next }
/^#ifdef __cplusplus/ { skipping = 1 }
skipping {
    if (/^#endif/)
        skipping = 0
    next
}
/^#endif$/ && !depth { next }
/clang-format/ || /^#(ifndef|define) WEFT_[A-Z_]*_H$/ || /^#include/ { next }
/^\/\* ---- .* ---- \*\/$/ {
    end_code()
    sub(/^\/\* ---- /, "")
    sub(/ ---- \*\/$/, "")
    print ".SS " escape($0)
    next
}
/^\/\*/ {
    end_code()
    print ".PP"
    comment = 1
}
comment {
    line = $0
    last = line ~ /\*\/ *$/
    sub(/^\/\* ?/, "", line)
    sub(/^ \* ?/, "", line)
    sub(/ *\*\/ *$/, "", line)
    if (line != "" || !last)
        show_text(line)
    if (last) {
        end_text()
        comment = 0
    }
    next
}
/^$/ {
    end_code()
    next
}
{
    line = $0
    sub(/^WEFT_API /, "", line)
    show_code(line)
}
END {
    end_code()
    print ".SH SEE ALSO\n.BR weft (1)\n.PP\nThe guide with examples is docs/library.md in the source."
}
