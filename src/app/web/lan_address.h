/* The address by which other machines of the network reach this one. */
#ifndef WEFT_LAN_ADDRESS_H
#define WEFT_LAN_ADDRESS_H

#define WEFT_LAN_ADDRESS 64

/* The address that connections to elsewhere come from, else the first one that is not loopback's. -ENODEV: there is none. */
int weft__lan_address(char ret[WEFT_LAN_ADDRESS]);

#endif
