#include <string.h>

#include "data/measured/nccl_tests_run.h"

/* The first lines of a run, in their order; then all others. */
typedef enum { VERSION, START, SETTING, BODY, NONE } Part;

/* Which of them a line is; banners of hosts and MPI are none. */
static Part
part_of (const char *line)
{
  static const struct {
    const char *prefix;
    Part part;
  } parts[] = {
    { "# nccl-tests version", VERSION },
    { "# Collective test starting:", START },
    { "# nThread", SETTING },
    { "#  Rank", BODY },
    { "# Rank", BODY },
    { "# Collective test concluded", BODY },
    { "#", NONE },
  };
  const char *first = line + strspn (line, " \t");
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (g_str_has_prefix (line, parts[i].prefix))
      return parts[i].part;
  return g_ascii_isdigit (*first) ? BODY : NONE;
}

/* A line that cannot follow those of the run begins the next. */
GArray *
ls_nccl_tests_split (char *const *lines)
{
  GArray *starts = g_array_new (FALSE, FALSE, sizeof (guint));
  Part reached = NONE;
  for (guint i = 0; lines[i]; i++) {
    Part part = part_of (lines[i]);
    if (part == NONE)
      continue;
    bool is_next = part < BODY && reached != NONE && part <= reached;
    if (starts->len == 0 || is_next) {
      guint at = starts->len == 0 ? 0 : i;
      g_array_append_val (starts, at);
    }
    reached = part;
  }
  guint none = 0;
  if (starts->len == 0)
    g_array_append_val (starts, none);
  return starts;
}
