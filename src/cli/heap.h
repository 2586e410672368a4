/* cli/heap.h — how a program that runs one job and ends takes its memory from the kernel.
 *
 * Problem. Bringing and clearing pages of 4 KiB takes a third of a run, and what malloc() gives back to the
 * kernel is asked for again by the next candidate of a sweep.
 *
 * The heap's addresses are reserved in one piece, for which the kernel is asked for pages of 2 MiB, and what
 * is freed stays with the process. Addresses that nobody uses take no memory; a limit on addresses (ulimit
 * -v) is left as it is. With another libc than glibc nothing changes. */
#ifndef LS_CLI_HEAP_H
#define LS_CLI_HEAP_H

/* Once, by main(), before all else. */
void cli_keep_memory (void);

#endif
