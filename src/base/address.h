/* What counts as one network address when clients are counted. */
#ifndef WEFT_ADDRESS_H
#define WEFT_ADDRESS_H

#include <weft/base.h>

#define WEFT_ADDRESS 64 /* bytes of an address as text */

/* IPv4 as it is, also when it came through an IPv6 socket; of IPv6 the first 64 bits, which one household or server has to
 * itself; any other text as it is, cut to size. */
void weft__address_group(const char *address, char *ret, size_t size);

#endif
