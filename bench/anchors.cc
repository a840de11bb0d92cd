/* The texts of bench/scan.c, read by RapidJSON and simdjson as the distribution has them, on the same machine in the same
 * run. Both check what Weft's scanner checks, UTF-8 included: RapidJSON by its reader with a handler that keeps nothing,
 * simdjson by building its document, which has no cheaper way to check all of a text. simdjson picks the widest instructions
 * by itself. */
#include <rapidjson/reader.h>
#include <simdjson.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "scan_texts.h"

namespace {

const int repeats = 400;

struct keeps_nothing : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, keeps_nothing> {
    bool Default() {
        return true;
    }
};

bool by_rapidjson(const char *text, size_t len) {
    (void) len;
    rapidjson::Reader reader;
    rapidjson::StringStream stream(text);
    keeps_nothing handler;
    return reader.Parse<rapidjson::kParseValidateEncodingFlag>(stream, handler);
}

bool by_simdjson(const char *text, size_t len) {
    static simdjson::dom::parser parser;
    return parser.parse(text, len, false).error() == simdjson::SUCCESS;
}

double best_ns(bool (*read)(const char *, size_t), const char *text, size_t len) {
    double least = 1e18;
    for (int i = 0; i < repeats; i++) {
        auto start = std::chrono::steady_clock::now();
        for (int j = 0; j < 10; j++)
            if (!read(text, len))
                std::abort();
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        if (took.count() / 10 < least)
            least = took.count() / 10;
    }
    return least;
}

} // namespace

int main() {
    static char text[TEXT_SIZE + 1 + simdjson::SIMDJSON_PADDING];
    for (size_t i = 0; i < SCAN_TEXTS; i++) {
        size_t len = fill_text(text, &scan_texts[i]);
        double n = static_cast<double>(len);
        std::printf("%-28s RapidJSON %6.2f GB/s   simdjson %6.2f GB/s\n", scan_texts[i].name,
                    n / best_ns(by_rapidjson, text, len), n / best_ns(by_simdjson, text, len));
    }
    return 0;
}
