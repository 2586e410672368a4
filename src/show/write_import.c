/* show/write_import.c — what a launch file says, what profiles have that become a trace, and what a captured
 * program allocates, as text and JSON. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

/* --- JSON ----------------------------------------------------------------------------------------- */

#include "show/import_keys.h"

/* --- text ----------------------------------------------------------------------------------------- */

#define MAX_ROWS 12

static void
append_document (GString *out, const char *title, const LsJsonDoc *doc)
{
  LsJsonOut w;
  ls_json_out_init (&w, out, 0);
  g_string_append_printf (out, "%s\n", title);
  for (const cJSON *one = ls_import_first (doc); one; one = one->next) {
    g_string_append_printf (out, "  %-22s ", one->string);
    ls_json_out_node (&w, NULL, one);
    g_string_append_c (out, '\n');
  }
}

#include "show/import_text.h"

/* ---- a captured program's memory ---- */

#include "show/captured_layouts_keys.h"

#define MOST_ROWS 12 /* of lines of the program in a text */

/* The first that was captured and did the same, in the same order; NULL: none before it. */
static const LsCaptured *
same_before (const LsCaptured *c, guint i)
{
  const LsCaptured *own = c->ranks->pdata[i];
  for (guint j = 0; j < i; j++) {
    const LsCaptured *other = c->ranks->pdata[j];
    if (!own->error && !other->error && own->trace && g_strcmp0 (own->trace, other->trace) == 0)
      return other;
  }
  return NULL;
}

static char *
remark_of (const LsCaptured *c, guint i)
{
  const LsCaptured *r = c->ranks->pdata[i], *same = same_before (c, i);
  if (r->error)
    return g_strdup (r->error);
  if (same)
    return g_strdup_printf ("does what %u does", same->rank);
  return r->like != r->rank ? g_strdup_printf ("differs from %u", r->like) : g_strdup ("");
}

#include "show/capture_keys.h"
#include "show/captured_text.h"
