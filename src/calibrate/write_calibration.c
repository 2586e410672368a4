#include "calibrate/write_calibration.h"

#include <math.h>

#include "calibrate/calibrate_run.h"
#include "calibrate/solve.h"
#include "compute/measured.h"
#include "data/machines/machines.h"
#include "data/text/json_out.h"

/* A number of a struct that is written where it is above 0. */
typedef struct {
  const char *key;
  size_t offset;
  bool is_time;
} Figure;

static const Figure rates[] = {
  { "sustained_fp8", offsetof (LsCalibration, sustained_fp8), false },
  { "sustained_nvfp4", offsetof (LsCalibration, sustained_nvfp4), false },
  { "gemm_unaligned", offsetof (LsCalibration, gemm_unaligned), false },
  { "attention_masked", offsetof (LsCalibration, attention_masked), false },
};
static const Figure figures[] = {
  { "host_launch", offsetof (LsAround, host_launch), true },
  { "kernel_gap", offsetof (LsAround, kernel_gap), true },
  { "graph_gap", offsetof (LsAround, graph_gap), true },
  { "memcpy_share", offsetof (LsAround, memcpy_share), false },
  { "copy_duplex", offsetof (LsAround, copy_duplex), false },
  { "priority_wait", offsetof (LsAround, priority_wait), true },
  { "streams_in_layer", offsetof (LsAround, streams_in_layer), false },
  { "lost_tiles", offsetof (LsAround, lost_tiles), false },
  { "lost_clusters", offsetof (LsAround, lost_clusters), false },
  { "lost_told", offsetof (LsAround, lost_told), false },
  { "waves", offsetof (LsAround, waves), false },
};

/* Coefficients are rounded to six digits, a range of shapes to four, an error to three. */
static int
digits_of (const LsField *f)
{
  bool is_range = f->offset == offsetof (LsKindFit, min_work) || f->offset == offsetof (LsKindFit, max_work);
  return f->offset == offsetof (LsKindFit, mape) ? 3 : is_range ? 4 : 6;
}

/* Coefficients that switch an effect off are left out. */
static void
append_coefficient (GString *out, const LsKindFit *fit, const LsField *f)
{
  const void *place = (const char *) fit + f->offset;
  bool is_launch = f->offset == offsetof (LsKindFit, launch);
  if (f->kind == LS_FIELD_TIME && (is_launch || *(const LsTime *) place > 0))
    g_string_append_printf (out, ",%s\"%s\": \"%.2fus\"", is_launch ? "\n      " : " ", f->key,
                            ls_time_to_s (*(const LsTime *) place) * 1e6);
  else if (f->kind == LS_FIELD_DOUBLE && *(const double *) place > 0)
    g_string_append_printf (out, ", \"%s\": %.*g", f->key, digits_of (f), *(const double *) place);
  else if (f->kind == LS_FIELD_BOOL && !f->required && *(const bool *) place)
    g_string_append_printf (out, ", \"%s\": true", f->key);
}

static void
append_coefficients (GString *out, const LsKindFit *fit)
{
  for (const LsField *f = ls_kind_fit_fields; f->key; f++)
    append_coefficient (out, fit, f);
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

/* Nanoseconds, as kernelbench prints them, come out exact; the rest has four digits. */
static char *
figure_text (const Figure *f, const LsAround *a)
{
  double value = ls_number_get (a, f->offset, f->is_time);
  LsTime t = f->is_time ? *(const LsTime *) ((const char *) a + f->offset) : 0;
  char digits[G_ASCII_DTOSTR_BUF_SIZE];
  if (!f->is_time)
    return g_strdup_printf ("%.17g",
                            g_ascii_strtod (g_ascii_formatd (digits, sizeof digits, "%.4g", value), NULL));
  return t % LS_NS == 0 ? g_strdup_printf ("\"%.3fus\"", value * 1e6)
                        : g_strdup_printf ("\"%" G_GINT64_FORMAT "ps\"", t);
}

#include "calibrate/calibration_text.h"
