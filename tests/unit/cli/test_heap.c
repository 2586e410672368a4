/* Pins: with glibc the program reserves its heap in one piece. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/heap.h"

#define RESERVED (512 << 20)
#define SKIPPED  77

int
main (void)
{
#ifdef __GLIBC__
  const char *before = sbrk (0);
  cli_keep_memory ();
  long more = (long) ((const char *) sbrk (0) - before);
  if (more >= RESERVED)
    return EXIT_SUCCESS;
  fprintf (stderr, "the heap has %ld bytes more, not %d\n", more, RESERVED);
  return EXIT_FAILURE;
#else
  return SKIPPED;
#endif
}
