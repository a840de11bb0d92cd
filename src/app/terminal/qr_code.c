/* Drawing what libqrencode makes. */
#include "qr_code.h"

#include <errno.h>
#include <qrencode.h>

/* The standard asks for four squares of light around it (ISO/IEC 18004 section 6.3.8); scanners do with two, and 80 columns
 * are few. */
#define QUIET 2

static bool is_dark(const QRcode *code, int x, int y) {
    bool inside = x >= 0 && y >= 0 && x < code->width && y < code->width;
    return inside && (code->data[y * code->width + x] & 1);
}

/* One character is two squares, one above the other. */
static const char *half_block(bool upper, bool lower) {
    return upper && lower ? "\xe2\x96\x88" : upper ? "\xe2\x96\x80" : lower ? "\xe2\x96\x84" : " ";
}

static int draw_line(const QRcode *code, int y, bool colour, weft_buf *out) {
    int r = colour ? weft__buf_put(out, NULL, "\033[30;107m", 9) : 0;
    for (int x = -QUIET; r >= 0 && x < code->width + QUIET; x++) {
        bool upper = is_dark(code, x, y), lower = is_dark(code, x, y + 1);
        const char *block = colour ? half_block(upper, lower) : half_block(!upper, !lower);
        r = weft__buf_put(out, NULL, block, strlen(block));
    }
    if (r >= 0 && colour)
        r = weft__buf_put(out, NULL, "\033[0m", 4);
    return r < 0 ? r : weft__buf_put(out, NULL, "\n", 1);
}

int weft__qr_draw(const char *text, bool colour, weft_buf *out) {
    errno = 0;
    QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L);
    if (!code)
        return errno == ENOMEM ? -ENOMEM : -E2BIG;
    int r = 0, width = code->width + 2 * QUIET;
    for (int y = -QUIET; r >= 0 && y < code->width + QUIET; y += 2)
        r = draw_line(code, y, colour, out);
    QRcode_free(code);
    return r < 0 ? r : width;
}
