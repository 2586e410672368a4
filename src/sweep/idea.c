#include "sweep/idea.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/text/field.h"

static const char *
family_of (const char *schedule)
{
  const char *name
      = g_str_has_prefix (schedule, "interleaved-") ? schedule + strlen ("interleaved-") : schedule;
  static const struct {
    const char *prefix, *family;
  } families[] = { { "zbv", "zbv" }, { "v-", "zbv" }, { "zb", "zb" }, { "dualpipe", "dualpipe" } };
  for (guint i = 0; i < G_N_ELEMENTS (families); i++)
    if (g_str_has_prefix (name, families[i].prefix))
      return families[i].family;
  return name;
}

char *
ls_idea_text (const LsStrategy *s)
{
  return g_strdup_printf ("%u %u %u %u %u %u %u %d %d %s", s->gpus, s->global_batch, s->tp, s->pp, s->cp,
                          s->ep, s->zero_stage, s->dp_kind, s->recompute, family_of (s->schedule));
}

/* From another knob that is said: more chunks have another schedule, gathers overlap as reductions do. */
static bool
follows (const char *key, const LsStrategy *a, const LsStrategy *b)
{
  bool is_gather = strcmp (key, "gather_overlap") == 0 && a->data.overlap != b->data.overlap
      && b->data.gather_overlap == (int) b->data.overlap;
  return is_gather || (strcmp (key, "schedule") == 0 && a->vpp != b->vpp);
}

char *
ls_idea_difference (const LsStrategy *a, const LsStrategy *b)
{
  GString *out = g_string_new (NULL);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *x = f->file_only ? NULL : ls_field_text (f, a, NULL),
                    *y = f->file_only ? NULL : ls_field_text (f, b, NULL);
    if (g_strcmp0 (x, y) == 0 || follows (f->key, a, b))
      continue;
    g_autofree char *knob = g_strdelimit (g_strdup (f->key), "_", '-');
    bool is_off = f->kind == LS_FIELD_BOOL && g_strcmp0 (y, "false") == 0;
    g_string_append_printf (out, "%s%s%s", out->len > 0 ? ", " : "", is_off ? "no " : "", knob);
    if (f->kind != LS_FIELD_BOOL)
      g_string_append_printf (out, " %s", y ? y : "by itself");
  }
  return g_string_free (out, FALSE);
}
