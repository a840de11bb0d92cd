/* The checksum of gzip and zlib (CRC-32, the reflected polynomial EDB88320), of many bytes at a time where the processor
 * can. */
#ifndef WEFT_CRC32_H
#define WEFT_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The sum of what sum stands for, followed by these bytes; 0 stands for nothing. */
uint32_t weft__crc32(uint32_t sum, const void *data, size_t len);

#endif
