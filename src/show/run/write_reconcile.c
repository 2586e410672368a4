/* show/run/write_reconcile.c — a profiled step next to the predicted one; what it shows of its software. */
#include "show/run/write_run.h"

#include <math.h>

#include <lockstep/error.h>

#include "data/text/json_out.h"

/* Of a step: "  copy", ", exposed". */
typedef struct {
  const char *name, *note;
  LsTime measured, predicted;
} Part;

static double
ratio (LsTime predicted, LsTime measured)
{
  return measured > 0 && predicted > 0 ? (double) predicted / (double) measured : NAN;
}

static void
add_part (GArray *parts, const char *name, const char *note, LsTime measured, LsTime predicted)
{
  const Part part = { name, note, measured, predicted };
  g_array_append_val (parts, part);
}

/* The sum of all tiers, and those that are not empty on both sides. */
static void
add_tiers (GArray *parts, const char *name, const LsTime measured[LS_N_TIERS],
           const LsTime predicted[LS_N_TIERS])
{
  static const char *const names[] = { "  compute", "  communication", "  copy" };
  guint sum = parts->len;
  add_part (parts, name, "", 0, 0);
  for (int tier = 0; tier < LS_N_TIERS; tier++) {
    g_array_index (parts, Part, sum).measured += measured[tier];
    g_array_index (parts, Part, sum).predicted += predicted[tier];
    if (measured[tier] + predicted[tier] > 0)
      add_part (parts, names[tier], tier == LS_TIER_COMPUTE ? "" : ", exposed", measured[tier],
                predicted[tier]);
  }
}

/* They add up to the step. */
static GArray *
parts_of_step (const LsStepTime *m, const LsStepTime *p)
{
  GArray *parts = g_array_new (FALSE, FALSE, sizeof (Part));
  add_tiers (parts, "matched", m->matched, p->matched);
  add_tiers (parts, "unmatched", m->unmatched, p->unmatched);
  add_part (parts, "idle", "", m->idle_host + m->idle_device, p->idle_host + p->idle_device);
  add_part (parts, "  waiting for the host", "", m->idle_host, p->idle_host);
  add_part (parts, "  gaps of the device", "", m->idle_device, p->idle_device);
  add_part (parts, "step", "", m->step, p->step);
  return parts;
}

static char *
beginning_of (const char *name)
{
  return g_utf8_strlen (name, -1) > 60 ? g_utf8_substring (name, 0, 60) : g_strdup (name);
}

#include "show/reconcile_text.h"

/* ---- for programs ---- */

#include "show/calibrate_keys.h"

/* --- what the profile shows of its software --------------------------------------------------------- */

static const LsSeenKey *
key_at (const LsSeenReport *r, guint i)
{
  return &g_array_index (r->keys, LsSeenKey, i);
}

static void
write_defaults (const LsSeenReport *r, const char *key, LsJsonOut *w)
{
  ls_json_out_begin_object (w, key);
  for (guint i = 0; i < r->keys->len; i++)
    if (key_at (r, i)->value)
      ls_json_out_string (w, key_at (r, i)->key, key_at (r, i)->value);
  ls_json_out_end_object (w);
}

/* ---- the file ---- */

static char *
source_of (const LsSeenReport *r)
{
  g_autofree char *profile = g_path_get_basename (r->profile);
  GString *s = g_string_new (NULL);
  g_string_append_printf (s, "lockstep calibrate --pytorch-trace: %s of %s%s%s", r->step, profile,
                          r->gpu ? " on " : "", r->gpu ? r->gpu : "");
  for (guint i = 0; i < r->keys->len; i++)
    g_string_append_printf (s, "; %s%s: %s", key_at (r, i)->key, key_at (r, i)->value ? "" : " left",
                            key_at (r, i)->why);
  return g_string_free (s, FALSE);
}

char *
ls_seen_report_file (const LsSeenReport *r, const char *name, GError **error)
{
  guint n = 0;
  for (guint i = 0; i < r->keys->len; i++)
    n += key_at (r, i)->value != NULL;
  if (n == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "%s: the trace shows nothing of its software that a file could hold", r->profile);
    return NULL;
  }
  g_autofree char *source = source_of (r);
  LsJsonOut w;
  ls_json_out_open_as (&w, "software");
  ls_json_out_string (&w, "name", name);
  ls_json_out_string (&w, "source", source);
  if (r->based_on)
    ls_json_out_string (&w, "based_on", r->based_on);
  ls_json_out_string (&w, "program", r->program);
  write_defaults (r, "defaults", &w);
  return ls_json_out_close (&w);
}
