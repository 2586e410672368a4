/* data/text/read_file.h — the bytes of an input file, with a limit on what a path can
 * make us read. */
#ifndef LS_DATA_TEXT_READ_FILE_H
#define LS_DATA_TEXT_READ_FILE_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

#define LS_MAX_INPUT_BYTES ((size_t) 64 << 20)

/* The whole file, newly allocated, with a NUL after its *ret_n bytes. The path
 * /dev/stdin stands for what the program was given as such, whatever that is; any
 * other pipe or device is refused, as reading it might never end; with LS_CONFINE
 * set (--confine) so is what is not near (base/near.h). NULL and a diagnostic
 * (LS_ERROR_INPUT) if the file is missing, unreadable, no regular file, refused or
 * larger than max_bytes. */
char *ls_read_file (const char *path, size_t max_bytes, size_t *ret_n, LsDiagList *diags);

/* The file opened, by the same rules. Close with fclose(). */
FILE *ls_open_file (const char *path, LsDiagList *diags);

/* --- piece by piece --------------------------------------------------------------------------------- */

/* For files that need not fit into memory. gzip (RFC 1952) is told by its first two bytes and unpacked on the
 * way, members behind each other too. */

/* Of what comes out: more than a profile of several steps with its stacks, as what is read of it stays
 * in memory. Of gzip less, as a small file may unpack to what takes minutes: who unpacks it by himself has
 * seen how large it is. Once LS_INPUT_PROBE_BYTES are out, what a file would come to is told by how far it is
 * read, and refused at once; so is what unpacks to more than LS_INPUT_MAX_RATIO times its size, which text
 * does not (profiles: 10 to 30 times), and of which the end is nowhere near. */
#define LS_INPUT_MAX_BYTES    ((uint64_t) 4 << 30)
#define LS_INPUT_MAX_UNPACKED ((uint64_t) 1 << 30)
#define LS_INPUT_PROBE_BYTES  ((uint64_t) 64 << 20)
#define LS_INPUT_MAX_RATIO    100

typedef struct LsInput LsInput;

/* What may be opened is as for ls_read_file(). NULL and a diagnostic (LS_ERROR_INPUT). */
LsInput *ls_input_open (const char *path, LsDiagList *diags);
/* n bytes of memory, borrowed. */
LsInput *ls_input_of_memory (const void *bytes, size_t n);
void ls_input_free (LsInput *input); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsInput, ls_input_free)

/* Up to n > 0 bytes; 0: the end, or trouble. */
size_t ls_input_read (LsInput *input, void *to, size_t n);
/* Why the bytes ended before the file did; NULL: nothing is wrong. Borrowed. */
const char *ls_input_trouble (const LsInput *input);

#endif
