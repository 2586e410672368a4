#include "data/jobs/read_ranges.h"

#include <string.h>

#include "base/doublings.h"
#include "base/handover.h"
#include "base/suggest.h"
#include "data/jobs/job_files.h"
#include "schedules/sched.h"

/* Those with a range of their own, which is that of sweep/space.c, by LsSpaceAxis. */
static const char *const own_axes[]
    = { "gpus",     "global_batch", "tp",   "pp",      "cp",        "ep",         "micro_batch", "vpp",
        "schedule", "sp",           "zero", "dp_kind", "recompute", "tp_overlap", NULL };
G_STATIC_ASSERT (G_N_ELEMENTS (own_axes) == LS_N_SPACE_AXES + 1);

/* Of which a job has one: as its degrees leave it, and what its cluster is built with. */
static const char *const no_axes[] = { "dp", "nccl_env", NULL };

/* All of them. */
typedef struct {
  const LsField *field[LS_MAX_SPACE_AXES];
  guint n;
} Axes;

static const Axes *
all_axes (void)
{
  static Axes all;
  static gsize is_made;
  if (!ls_once_enter (&is_made))
    return &all;
  for (; all.n < LS_N_SPACE_AXES; all.n++)
    all.field[all.n] = ls_field_find (ls_strategy_fields, own_axes[all.n]);
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (!f->file_only && !g_strv_contains (no_axes, f->key) && !g_strv_contains (own_axes, f->key)) {
      g_assert (all.n < LS_MAX_SPACE_AXES);
      all.field[all.n++] = f;
    }
  ls_once_leave (&is_made);
  return &all;
}

guint
ls_space_n_axes (void)
{
  return all_axes ()->n;
}

LsSpaceAxis
ls_space_axis (const char *knob)
{
  const LsField *f = ls_field_find (ls_strategy_fields, knob);
  const Axes *all = all_axes ();
  for (guint a = 0; f && a < all->n; a++)
    if (f == all->field[a])
      return (LsSpaceAxis) a;
  return LS_NO_SPACE_AXIS;
}

const LsField *
ls_space_axis_field (LsSpaceAxis axis)
{
  return all_axes ()->field[axis];
}

const char *
ls_space_axis_name (LsSpaceAxis axis)
{
  return ls_space_axis_field (axis)->key;
}

/* --- the table of keys --------------------------------------------------------------- */

/* A stage, with its group or without: none that follows from the backend. */
static bool
parse_stage (const char *text, void *target)
{
  const LsStrategy *s = target;
  return all_axes ()->field[LS_SPACE_ZERO]->parse (text, target) && s->zero_stage != LS_ZERO_AUTO
      && s->data.zero_group <= LS_SPACE_MOST_IN_GROUP;
}

/* "1..8" of whole numbers: 1, 2, 4, 8. */
static char **
doublings_of (const char *text)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (!strstr (text, "..") || !ls_doublings_add (text, G_MAXUINT32, values))
    return NULL;
  char **items = g_new0 (char *, values->len + 1);
  for (guint i = 0; i < values->len; i++)
    items[i] = g_strdup_printf ("%u", g_array_index (values, guint32, i));
  return items;
}

static const LsField header[] = {
  { "schema", LS_FIELD_IGNORED, .required = true, .root_only = true,
    .meaning = "kind and version of the file" },
};

#define N_HEADER G_N_ELEMENTS (header)

const LsField *
ls_ranges_fields (void)
{
  static LsField elements[LS_MAX_SPACE_AXES][2], fields[N_HEADER + LS_MAX_SPACE_AXES + 1];
  static LsStrategy blank;
  static gsize is_made;
  if (!ls_once_enter (&is_made))
    return fields;
  ls_strategy_init (&blank);
  memcpy (fields, header, sizeof header);
  for (guint a = 0; a < ls_space_n_axes (); a++) {
    const LsField *f = all_axes ()->field[a];
    elements[a][0] = *f;
    elements[a][0].key = "";
    fields[N_HEADER + a] = (LsField) {
      .key = f->key,
      .kind = LS_FIELD_ARRAY,
      .offset = offsetof (LsRanges, values) + a * sizeof (GArray *),
      .fields = elements[a],
      .element_size = sizeof blank,
      .blank = &blank,
      .default_text = a < LS_N_SPACE_AXES ? NULL : "that of the job",
      .meaning = ls_field_meaning (f),
      .items = f->kind == LS_FIELD_UINT ? doublings_of : NULL,
    };
  }
  fields[N_HEADER + ls_space_n_axes ()].table = "ranges";
  elements[LS_SPACE_ZERO][0].parse = parse_stage;
  elements[LS_SPACE_ZERO][0].expected = "a stage from 0 to 3, as 3 or 3@8";
  ls_once_leave (&is_made);
  return fields;
}

/* --- reading ------------------------------------------------------------------------- */

static bool
check_schedule (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  if (ls_sched_find (node->valuestring))
    return true;
  for (guint i = 0; ls_sched_at (i); i++)
    g_ptr_array_add (names, (gpointer) ls_sched_at (i)->name);
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (node->valuestring, (const char *const *) names->pdata);
  g_autofree char *hint
      = near ? g_strdup_printf ("did you mean \"%s\"?", near) : g_strdup ("lockstep list schedules");
  g_autofree char *got = ls_json_describe (node);
  return ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, hint,
                           "expected the name of a schedule; got %s", got);
}

bool
ls_ranges_check_lists (const LsJsonDoc *doc, const cJSON *object, LsDiagList *diags)
{
  bool ok = true;
  for (guint a = 0; a < ls_space_n_axes (); a++) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive (object, ls_space_axis_name ((LsSpaceAxis) a));
    if (cJSON_IsArray (list) && !list->child)
      ok = ls_json_doc_diag (doc, list, LS_JSON_AT_VALUE, diags,
                             "leave the key out for the range that it has by itself",
                             "expected at least one value; got an empty list");
    for (const cJSON *c = list && a == LS_SPACE_SCHEDULE ? list->child : NULL; c; c = c->next)
      ok = (!cJSON_IsString (c) || check_schedule (doc, c, diags)) && ok;
  }
  return ok;
}

bool
ls_ranges_read (const LsJsonDoc *doc, LsRanges *ret_ranges, LsDiagList *diags)
{
  LsRanges ranges = { 0 };
  bool is_read = ls_fields_read_file (ls_ranges_fields (), "ranges", doc, &ranges, diags);
  if (ls_ranges_check_lists (doc, ls_json_doc_root (doc), diags) && is_read) {
    *ret_ranges = ranges;
    return true;
  }
  ls_ranges_clear (&ranges);
  return false;
}

bool
ls_ranges_load (const char *path, LsRanges *ret_ranges, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load_or_given (path, "ranges", diags);
  return doc && ls_ranges_read (doc, ret_ranges, diags);
}

void
ls_ranges_clear (LsRanges *ranges)
{
  ls_fields_clear (ls_ranges_fields (), ranges);
}
