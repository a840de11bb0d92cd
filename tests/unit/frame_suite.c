/* Every framing of a byte stream in the suite of all framings. */
#include "suites/framing.h"

FRAMING_SUITE(ndjson, .out = &weft_ndjson, .in = &weft_ndjson)
FRAMING_SUITE(content_length, .out = &weft_content_length, .in = &weft_content_length)
FRAMING_SUITE(detect_lines, .out = &weft_ndjson, .in = &weft_detect)
FRAMING_SUITE(detect_headers, .out = &weft_content_length, .in = &weft_detect)
FRAMING_SUITE(detect_writes_lines, .out = &weft_detect, .in = &weft_ndjson)

TEST_MAIN(CASE(framing_ndjson) CASE(framing_content_length) CASE(framing_detect_lines) CASE(framing_detect_headers)
              CASE(framing_detect_writes_lines))
