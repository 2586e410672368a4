#include "job/softwares.h"

#include <string.h>

#include "base/handover.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "model/operators.h"

/* Of jobs like which nobody is known to have measured any. */
#define RUNS_LIKE_NOBODY "software that is not known"

static GArray *
load (void)
{
  GArray *all = g_array_new (FALSE, TRUE, sizeof (LsSoftwareSpec));
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_SOFTWARE);
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsSoftwareSpec s;
    if (ls_software_load_general (((const LsDataEntry *) entries->pdata[i])->path, &s, diags))
      g_array_append_val (all, s);
  }
  return all;
}

const GArray *
ls_softwares (void)
{
  static GArray *all;
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    all = load ();
    ls_once_leave (&is_made);
  }
  return all;
}

const LsSoftwareSpec *
ls_softwares_find (int dp_kind, const char *architecture)
{
  const GArray *all = ls_softwares ();
  const LsSoftwareSpec *any = NULL;
  for (guint i = 0; i < all->len; i++) {
    const LsSoftwareSpec *s = &g_array_index (all, LsSoftwareSpec, i);
    if (!ls_software_has_dp_kind (s, dp_kind))
      continue;
    if (s->architectures && ls_software_has_architecture (s, architecture))
      return s;
    if (!s->architectures && !any)
      any = s;
  }
  return any;
}

static const LsSoftwareSpec *
find_named (const char *name)
{
  const GArray *all = ls_softwares ();
  for (guint i = 0; i < all->len; i++)
    if (strcmp (g_array_index (all, LsSoftwareSpec, i).name, name) == 0)
      return &g_array_index (all, LsSoftwareSpec, i);
  return NULL;
}

static bool
is_said (GHashTable *said, const char *key)
{
  return said && g_hash_table_contains (said, key);
}

/* The list of the program, shared: from its text it would be read from its file again. */
static void
lend_kernels (const LsStrategy *defaults, LsStrategy *s)
{
  ls_strategy_forget_kernels (s);
  s->kernels = g_strdup (defaults->kernels);
  s->recipes = ls_recipes_ref (defaults->recipes);
}

/* What is of a program, but for what was said. */
static void
lend (const LsSoftwareSpec *software, GHashTable *said, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_strategy_lend_by_architecture (s, &software->defaults);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_kernels = strcmp (f->key, "kernels") == 0,
         is_lent = ls_field_is_of_program (f) && !is_said (said, f->key);
    g_autofree char *value = is_lent && !is_kernels ? ls_field_text (f, &software->defaults, NULL) : NULL;
    if (is_lent && is_kernels)
      lend_kernels (&software->defaults, s);
    if (value)
      ls_field_set_text (ls_strategy_fields, s, f->key, value, diags);
  }
}

/* What its program has on the accelerator, but for what was said; of a program that is only taken to run the
 * job, what is of a program. */
static void
take_defaults_here (bool is_assumed, GHashTable *said, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (const LsField *f = ls_strategy_fields; s->by_architecture && f->key; f++) {
    const char *value = ls_strategy_default_here (s, f->key);
    if (value && !is_said (said, f->key) && (!is_assumed || ls_field_is_of_program (f)))
      ls_field_set_text (ls_strategy_fields, s, f->key, value, diags);
  }
}

/* Gradients that are said to be in 16 bits are those of weights in 16 bits, beside which there are masters
 * (Rajbhandari et al. 2020, section 3.1); so with moments of their own, or products that add to them. */
static void
fit_master (GHashTable *said, LsStrategy *s)
{
  if (is_said (said, "master") || !ls_master_is_the_weight ((LsMaster) s->master))
    return;
  bool is_narrow = is_said (said, "grad_dtype") && s->grad_dtype != LS_DTYPE_FP32;
  if (is_narrow || is_said (said, "moment_dtype") || is_said (said, "variance_dtype")
      || is_said (said, "grad_fusion"))
    s->master = LS_MASTER_FP32;
}

static void
assume (const char *architecture, GHashTable *said, LsStrategy *s)
{
  const LsSoftwareSpec *software = ls_softwares_find (ls_strategy_dp_kind (s), architecture);
  if (!software)
    return;
  lend (software, said, s);
  fit_master (said, s);
  s->software = g_strdup (software->name);
  s->software_is_assumed = true;
}

void
ls_softwares_settle (const LsSoftwareSpec *named, const LsHardware *hardware, GHashTable *said, LsStrategy *s)
{
  if (named)
    ls_software_settle (named, s);
  else if (!s->software)
    assume (ls_hardware_architecture (hardware), said, s);
  s->architecture = g_intern_string (ls_hardware_architecture (hardware));
  take_defaults_here (s->software_is_assumed, said, s);
  if (!is_said (said, "kernels") && s->dtype == LS_DTYPE_FP32)
    ls_strategy_forget_kernels (s);
}

const LsSoftwareSpec *
ls_softwares_assumed (const LsStrategy *s)
{
  return s->software_is_assumed ? find_named (s->software) : NULL;
}

void
ls_softwares_blank (const LsStrategy *s, LsStrategy *ret_blank)
{
  ls_strategy_init (ret_blank);
  const LsSoftwareSpec *software = ls_softwares_assumed (s);
  if (software
      && !ls_software_has_dp_kind (software, s->dp_kind)) /* of a single copy, whichever way it asked for */
    software = ls_softwares_find (s->dp_kind, "");
  if (software)
    lend (software, NULL, ret_blank);
  ret_blank->architecture = s->architecture;
  take_defaults_here (true, NULL, ret_blank);
}

const char *
ls_softwares_runs_like (const char *named, const LsStrategy *s, const char *architecture)
{
  const LsSoftwareSpec *assumed
      = s->software_is_assumed ? ls_softwares_assumed (s) : ls_softwares_find (s->dp_kind, architecture);
  const char *words = named ? named : assumed ? assumed->runs_like : NULL;
  return g_intern_string (words ? words : RUNS_LIKE_NOBODY);
}
