/* A text as a QR code, drawn with half blocks: two rows of squares in a line of text. */
#ifndef WEFT_QR_CODE_H
#define WEFT_QR_CODE_H

#include "buf.h"

/* Append its lines to out, with the light border that scanners need. colour: black on white by the terminal's colours, so
 * that its own do not matter; otherwise light squares are drawn, for terminals that write light on dark. The number of
 * columns; -E2BIG: the text is too long; -ENOMEM. */
int weft__qr_draw(const char *text, bool colour, weft_buf *out);

#endif
