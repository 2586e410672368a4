#include "calibrate/write_calibration.h"

#include <math.h>

#include "calibrate/calibrate_run.h"
#include "compute/measured.h"
#include "data/machines/machines.h"
#include "data/text/json_out.h"

/* Coefficients are rounded to six digits, a range of shapes to four, an error to three. */
static int
digits_of (const LsField *f)
{
  bool is_range = f->offset == offsetof (LsKindFit, min_work) || f->offset == offsetof (LsKindFit, max_work);
  return f->offset == offsetof (LsKindFit, mape) ? 3 : is_range ? 4 : 6;
}

/* Coefficients that switch an effect off are left out. */
static void
append_coefficient (GString *json, const LsKindFit *fit, const LsField *f)
{
  const void *place = (const char *) fit + f->offset;
  bool is_launch = f->offset == offsetof (LsKindFit, launch);
  if (f->kind == LS_FIELD_TIME && (is_launch || *(const LsTime *) place > 0))
    g_string_append_printf (json, ",%s\"%s\": \"%.2fus\"", is_launch ? "\n      " : " ", f->key,
                            ls_time_to_s (*(const LsTime *) place) * 1e6);
  else if (f->kind == LS_FIELD_DOUBLE && *(const double *) place > 0)
    g_string_append_printf (json, ", \"%s\": %.*g", f->key, digits_of (f), *(const double *) place);
  else if (f->kind == LS_FIELD_BOOL && !f->required && *(const bool *) place)
    g_string_append_printf (json, ", \"%s\": true", f->key);
}

static void
append_kind (GString *json, const char *key, const LsKindFit *fit, const char *source, bool is_last)
{
  g_string_append_printf (json, "    \"%s\": {\n      \"fitted\": %s", key,
                          fit->is_fitted ? "true" : "false");
  for (const LsField *f = ls_kind_fit_fields; f->key; f++)
    append_coefficient (json, fit, f);
  g_string_append_printf (json, ",\n      \"source\": \"%s\"\n    }%s\n", source, is_last ? "" : ",");
}

static guint
last_slot (char *const *slot_source)
{
  guint last = 0;
  for (guint i = 0; i < LS_N_ENTRIES; i++)
    if (slot_source[i])
      last = i;
  return last;
}

/* On a line of its own, from its place to its end. */
static void
append_line (GString *json, const GString *object, bool is_last)
{
  g_string_append_printf (json, "    %s%s\n", object->str, is_last ? "" : ",");
}

/* Without its folder. */
static void
write_file (LsJsonOut *w, const LsProfile *p, guint n_used)
{
  g_autofree char *file = g_path_get_basename (p->path);
  const struct {
    const char *key, *value;
  } texts[] = { { "gpu", p->gpu }, { "driver", p->driver }, { "cuda", p->cuda }, { "date", p->date } };
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "file", file);
  ls_json_out_string (w, "sha256", p->sha256);
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (texts[i].value)
      ls_json_out_string (w, texts[i].key, texts[i].value);
  ls_json_out_uint (w, "rows", p->n_rows);
  ls_json_out_uint (w, "used", n_used);
  ls_json_out_end_object (w);
}

/* Both layers: what is there still, and what took the place of what. */
static void
write_base (LsJsonOut *w, const LsCalibrateRun *run)
{
  ls_json_out_begin_object (w, "base");
  ls_json_out_string (w, "calibration", run->report.base);
  ls_json_out_string (w, "sha256", run->base_sha256);
  ls_json_out_string (w, "kept_entries", run->report.kept);
  ls_json_out_begin_array (w, "coefficients");
  for (guint i = 0; i < run->report.changes->len; i++) {
    g_autofree char *text = ls_fit_change_to_text (&g_array_index (run->report.changes, LsFitChange, i));
    ls_json_out_string (w, NULL, text);
  }
  for (guint i = 0; i < run->report.follows->len; i++) {
    g_autofree char *text = g_strconcat (g_ptr_array_index (run->report.follows, i), ": moved with it", NULL);
    ls_json_out_string (w, NULL, text);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

/* The command that makes it again, without the folders of files. */
static char *
command_of (const LsCalibrateRun *run)
{
  GString *command = g_string_new ("lockstep calibrate");
  for (guint i = 0; i < run->profiles->len; i++) {
    g_autofree char *file = g_path_get_basename (((const LsProfile *) run->profiles->pdata[i])->path);
    g_string_append_printf (command, " %s", file);
  }
  g_string_append_printf (command, " --gpu %s%s", run->gpu.name, run->holds_half ? " --hold-out half" : "");
  return g_string_free (command, FALSE);
}

static void
append_provenance (GString *json, const LsCalibrateRun *run)
{
  g_autoptr (GString) object = g_string_new (NULL);
  g_autofree char *command = command_of (run);
  LsJsonOut w;
  ls_json_out_init (&w, object, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "command", command);
  ls_json_out_string (&w, "version", run->version);
  ls_json_out_string (&w, "timing", run->has_sustained ? "burst and sustained" : "burst");
  if (run->report.base)
    write_base (&w, run);
  ls_json_out_begin_array (&w, "files");
  for (guint i = 0; i < run->profiles->len; i++)
    write_file (&w, run->profiles->pdata[i], g_array_index (run->n_used, guint, i));
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  g_string_append_printf (json, "  \"provenance\": %s,\n", object->str);
}

/* Nanoseconds, as kernelbench prints them, come out exact. */
static void
write_measured (LsJsonOut *w, const LsMeasuredKernel *k)
{
  g_autofree char *time = g_strdup_printf ("%" G_GINT64_FORMAT "ps", k->time);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "kernel", ls_kernel_kind_name ((LsKernelKind) k->kind));
  if (k->name)
    ls_json_out_string (w, "name", k->name);
  for (const LsEnumName *a = ls_measured_attentions; a->name; a++)
    if (a->value == k->implementation)
      ls_json_out_string (w, "implementation", a->name);
  ls_json_out_string (w, "dtype", ls_dtype_name ((LsDtype) k->dtype));
  ls_json_out_uint (w, "m", k->m);
  ls_json_out_uint (w, "n", k->n);
  if (k->k > 0)
    ls_json_out_uint (w, "k", k->k);
  if (k->batch > 1)
    ls_json_out_uint (w, "batch", k->batch);
  if (k->flops > 0)
    ls_json_out_double (w, "flops", k->flops);
  ls_json_out_double (w, "bytes", k->bytes);
  ls_json_out_string (w, "time", time);
  ls_json_out_end_object (w);
}

static void
append_measured (GString *json, const GArray *table)
{
  g_string_append (json, "  },\n  \"measured\": [\n");
  for (guint i = 0; i < table->len; i++) {
    g_autoptr (GString) object = g_string_new (NULL);
    LsJsonOut w;
    ls_json_out_init (&w, object, 0);
    write_measured (&w, &g_array_index (table, LsMeasuredKernel, i));
    append_line (json, object, i + 1 == table->len);
  }
  g_string_append (json, "  ]\n}\n");
}

/* Of each key that was measured, and where it comes from. */
static void
write_around (LsJsonOut *w, const LsAround *a, char *const *source)
{
  const struct {
    const char *key;
    LsTime time;
    double value;
  } figures[] = { { "host_launch", a->host_launch, 0 },
                  { "kernel_gap", a->kernel_gap, 0 },
                  { "graph_gap", a->graph_gap, 0 },
                  { "memcpy_share", 0, a->memcpy_share },
                  { "copy_duplex", 0, a->copy_duplex },
                  { "priority_wait", a->priority_wait, 0 },
                  { "streams_in_layer", 0, a->streams_in_layer },
                  { "lost_tiles", 0, a->lost_tiles },
                  { "lost_clusters", 0, a->lost_clusters },
                  { "lost_told", 0, a->lost_told },
                  { "waves", 0, a->waves } };
  char digits[G_ASCII_DTOSTR_BUF_SIZE];
  ls_json_out_begin_object (w, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (figures); i++) {
    LsTime t = figures[i].time;
    g_autofree char *time = t % LS_NS == 0 ? g_strdup_printf ("%.3fus", ls_time_to_s (t) * 1e6)
                                           : g_strdup_printf ("%" G_GINT64_FORMAT "ps", t);
    if (figures[i].time > 0)
      ls_json_out_string (w, figures[i].key, time);
    else if (figures[i].value > 0)
      ls_json_out_double (
          w, figures[i].key,
          g_ascii_strtod (g_ascii_formatd (digits, sizeof digits, "%.4g", figures[i].value), NULL));
  }
  for (const LsEnumName *g = ls_gemms_names; g->name; g++)
    if (g->value == a->gemms)
      ls_json_out_string (w, "gemms", g->name);
  ls_json_out_begin_object (w, "source");
  for (char *const *s = source; s && s[0]; s += 2)
    ls_json_out_string (w, s[0], s[1]);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
append_around (GString *json, const LsAround *a, char *const *source)
{
  g_autoptr (GString) object = g_string_new (NULL);
  LsJsonOut w;
  if (!ls_around_is_measured (a))
    return;
  ls_json_out_init (&w, object, 0);
  write_around (&w, a, source);
  g_string_append_printf (json, "  \"around\": %s,\n", object->str);
}

char *
ls_calibration_to_json (const LsCalibration *calibration, char *const *slot_source,
                        char *const *around_source, const LsCalibrateRun *run)
{
  LsCalibration c = *calibration; /* borrows; for pointers that may be written through */
  GString *json = g_string_new ("{\n");

  g_string_append_printf (json, "  \"schema\": \"lockstep.calibration/1\",\n  \"name\": \"%s\",\n", c.name);
  g_string_append_printf (json, "  \"source\": \"%s\",\n", c.source);
  if (run)
    append_provenance (json, run);
  g_string_append_printf (json, "  \"sustained\": %.3g,\n", c.sustained);
  if (c.sustained_fp8 > 0)
    g_string_append_printf (json, "  \"sustained_fp8\": %.3g,\n", c.sustained_fp8);
  if (c.sustained_nvfp4 > 0)
    g_string_append_printf (json, "  \"sustained_nvfp4\": %.3g,\n", c.sustained_nvfp4);
  if (c.gemm_unaligned > 0)
    g_string_append_printf (json, "  \"gemm_unaligned\": %.3g,\n", c.gemm_unaligned);
  if (c.attention_masked > 0)
    g_string_append_printf (json, "  \"attention_masked\": %.3g,\n", c.attention_masked);
  append_around (json, &c.around, around_source);
  g_string_append (json, "  \"kernels\": {\n");
  for (guint i = 0; i < LS_N_ENTRIES; i++)
    if (slot_source[i])
      append_kind (json, ls_entry_key (i), ls_entry_fit (&c, i), slot_source[i],
                   i == last_slot (slot_source));
  if (c.measured && c.measured->len > 0)
    append_measured (json, c.measured);
  else
    g_string_append (json, "  }\n}\n");
  return g_string_free (json, FALSE);
}
