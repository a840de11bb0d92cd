/* The guard as a program of its own: linked with the C library alone, and carried inside this program. It is there in half a
 * millisecond, where this program again, which is a guard too, needs three to link libraries that a guard does not use. As
 * one file the two are always of one version, and nothing has to be found.
 *
 * A build with a sanitizer has none, and a kernel may refuse to run it. Then the guard is this program again. */
#ifndef WEFT_GUARD_IMAGE_H
#define WEFT_GUARD_IMAGE_H

/* A descriptor of a file in memory that can be run and that nobody can change, not below `lowest`. Made by the first call,
 * and the same for all; not the caller's. -ENOENT: there is none. Other errors may pass. From the thread of the loop only.
 */
int weft__guard_image(int lowest);
/* The kernel does not run it: there is none from now on. */
void weft__guard_image_refuse(void);

#endif
