/* JSON as people write it into files: with comments, with a comma behind the last member, with a byte order mark.
 *
 * What JSON does not have is overwritten with blanks, so that every byte keeps its place and the rest is read by the same
 * scanner as everything else. Nothing more is relaxed: no single quotes, no names without quotes, no comments in comments.
 */
#ifndef WEFT_RELAXED_H
#define WEFT_RELAXED_H

#include <weft/json.h>

#include "fault.h"

/* Blank what JSON does not have; line ends stay. The text's length stays, strict JSON is not changed. Where a comment begins
 * that does not end, or len. */
size_t weft__relaxed_blank(char *text, size_t len);

/* Like weft_doc_parse() for a relaxed text, of which the document has a copy of the same length: text + (value.text -
 * doc->text) is where a value came from. -EBADMSG with *ret_fault, which is untouched otherwise; -ENOMEM. */
int weft__relaxed_parse(const char *text, size_t len, const weft_alloc *alloc, weft_doc **ret, weft_fault *ret_fault);

#endif
