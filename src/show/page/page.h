/* show/page/page.h — a result as one HTML file to look at: it needs no network, no server and no other file,
 * so it opens from a disk and from a mail.
 *
 * The file holds the result as JSON, one <script type="application/json"> for each part, and a program that
 * shows it (page.js and what stands beside it; view_X.js is the view of a command). So the numbers on the
 * page are those of `--json`. A part of many numbers is packed: gzip, then base64. Each part that is JSON has
 * a schema; others are SVG and CSV. A policy in the file forbids it to load anything.
 *
 * Names that files give are text there, never markup: in JSON "<", ">" and "&" are written as \u003c, \u003e
 * and \u0026, and the program makes text nodes only. */
#ifndef LS_SHOW_PAGE_PAGE_H
#define LS_SHOW_PAGE_PAGE_H

#include <glib.h>

#include "exec/replay/timeline.h"

typedef struct LsPage LsPage;

/* kind: of a view, "run". Free with ls_page_free(). */
LsPage *ls_page_new (const char *kind);
void ls_page_free (LsPage *page); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPage, ls_page_free)

/* subtitle: NULL, none. */
void ls_page_set_title (LsPage *page, const char *title, const char *subtitle);
/* Lines that a user should read: each ends in a newline. */
void ls_page_set_notes (LsPage *page, const char *notes);
/* Takes the JSON, which the view finds by its name. */
void ls_page_take (LsPage *page, const char *name, char *json);
void ls_page_take_packed (LsPage *page, const char *name, char *json);

/* The file, newly allocated. version: of Lockstep; command: that made it. */
char *ls_page_format (const LsPage *page, const char *version, const char *command);

/* --- what a page draws and no result holds, as JSON, newly allocated ----------------------------- */

/* Of at most 64 ranks, all or one of each role (run/timeline_boxes.h), the passes are there; of as many as
 * stay below LS_PAGE_MAX_OPS ops together, the ops too. Times are whole nanoseconds from the start of the
 * window, each start less that of the item before. Columns of a rank, an item for each op in the order of its
 * spans:
 *
 *     start   less that of the op before        length  -1: not over when the run stopped
 *     wait    communication: until all partners were there, -1: never; kernel: what sharing added to it
 *     stream, name, tag   indices of the lists  mb, chunk, layer   layer -1: none
 *     cause   index of the op it waited for, as so many before it; 0: none      why   LsCause
 *
 * Messages between ranks whose ops are there: from, from_op, to, to_op, indices of ranks of the list, and of
 * their ops. */
#define LS_PAGE_MAX_OPS 200000

char *ls_page_timeline (const LsTimeline *t);

/* Of a rank: samples (LsMemorySample), thinned to the fullest of each of 1,000 columns of the window. */
typedef struct {
  uint32_t rank;
  const GArray *samples;
} LsPageMemory;

char *ls_page_memory (const LsPageMemory *ranks, guint n, LsTime window, uint64_t capacity_bytes);

#endif
