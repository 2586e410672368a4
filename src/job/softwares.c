#include "job/softwares.h"

#include <math.h>
#include <string.h>

#include "base/handover.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"

/* Of jobs with adapters (LoRA), whatever the program. */
#define RUNS_LIKE_ADAPTERS g_intern_static_string ("adapters on frozen weights")
/* Of jobs like which nobody is known to have measured any. */
#define RUNS_LIKE_NOBODY "software that is not known"

/* A program at hand. Most are never more than looked at, so they are read when they are asked for. */
typedef struct {
  char *path;
  LsSoftwareSpec head;
  gsize is_read;
  LsSoftwareSpec *spec; /* NULL: its file is wrong */
} Program;

static GArray *
load_heads (void)
{
  GArray *all = g_array_new (FALSE, TRUE, sizeof (Program));
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_SOFTWARE);
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const char *path = ((const LsDataEntry *) entries->pdata[i])->path;
    Program p = { 0 };
    bool is_general = ls_software_load_head (path, &p.head, diags) && (p.head.dp_kinds || p.head.emit);
    p.path = is_general ? g_strdup (path) : NULL;
    if (is_general)
      g_array_append_val (all, p);
    else
      ls_software_clear (&p.head);
  }
  return all;
}

/* Program, in the order of their names; made once. */
static GArray *
programs (void)
{
  static GArray *all;
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    all = load_heads ();
    ls_once_leave (&is_made);
  }
  return all;
}

static const LsSoftwareSpec *
read_program (Program *p)
{
  if (ls_once_enter (&p->is_read)) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsSoftwareSpec spec;
    p->spec = ls_software_load (p->path, &spec, diags) ? g_memdup2 (&spec, sizeof spec) : NULL;
    ls_once_leave (&p->is_read);
  }
  return p->spec;
}

const GPtrArray *
ls_softwares (void)
{
  static GPtrArray *all;
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    all = g_ptr_array_new ();
    for (guint i = 0; i < programs ()->len; i++) {
      const LsSoftwareSpec *s = read_program (&g_array_index (programs (), Program, i));
      if (s)
        g_ptr_array_add (all, (gpointer) s);
    }
    ls_once_leave (&is_made);
  }
  return all;
}

/* architecture: NULL: of those that name none. */
static const LsSoftwareSpec *
find_by_head (int dp_kind, const char *architecture)
{
  const LsSoftwareSpec *found = NULL;
  for (guint i = 0; i < programs ()->len && !found; i++) {
    Program *p = &g_array_index (programs (), Program, i);
    bool fits = architecture ? p->head.architectures && ls_software_has_architecture (&p->head, architecture)
                             : !p->head.architectures;
    found = fits && ls_software_has_dp_kind (&p->head, dp_kind) ? read_program (p) : NULL;
  }
  return found;
}

const LsSoftwareSpec *
ls_softwares_find (int dp_kind, const char *architecture)
{
  const LsSoftwareSpec *found = find_by_head (dp_kind, architecture);
  return found ? found : find_by_head (dp_kind, NULL);
}

const LsSoftwareSpec *
ls_softwares_textbook (void)
{
  static Program textbook = { .path = LS_SOFTWARE_TEXTBOOK };
  return read_program (&textbook);
}

static bool
is_said (GHashTable *said, const char *key)
{
  return said && g_hash_table_contains (said, key);
}

/* What its program has on the accelerator, but for what was said. */
static void
take_defaults_here (GHashTable *said, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (const LsField *f = ls_strategy_fields; s->program.by_architecture && f->key; f++) {
    const char *value = ls_strategy_default_here (s, f->key);
    if (value && !is_said (said, f->key))
      ls_field_set_text (ls_strategy_fields, s, f->key, value, diags);
  }
}

/* What its program runs where the accelerator has no such attention as the job asks for; AUTO: nothing that
 * was measured there. */
static void
take_other_attention (const LsHardware *hardware, LsStrategy *s)
{
  const char *here = ls_strategy_default_here (s, "attention_kernel");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy own = { .use.attention_kernel = s->program.attention_else };
  if (here)
    ls_field_set_text (ls_strategy_fields, &own, "attention_kernel", here, diags);
  s->program.attention_else = ls_hardware_has_attention (hardware, own.use.attention_kernel)
      ? own.use.attention_kernel
      : LS_ATTENTION_KERNEL_AUTO;
}

/* What a program's calls cost is told for x86 servers. What the job says is of its own hosts. */
static void
take_call_time (double call_time, GHashTable *said, LsStrategy *s)
{
  double times = call_time / (s->program.call_time > 0 ? s->program.call_time : 1);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    gsize at = f->offset - offsetof (LsStrategy, launch.host);
    if (f->offset < offsetof (LsStrategy, launch.host) || at >= sizeof s->launch.host
        || is_said (said, f->key))
      continue;
    LsTime *cost = &s->launch.host[at / sizeof *s->launch.host];
    *cost = *cost == LS_HOST_AUTO ? *cost : (LsTime) llround ((double) *cost * times);
  }
  s->program.call_time = call_time;
}

void
ls_softwares_settle (const LsSoftwareSpec *named, const LsHardware *hardware, GHashTable *said, LsStrategy *s)
{
  if (named)
    ls_software_settle (named, s);
  else if (!s->program.software)
    s->program.software = g_strdup (LS_SOFTWARE_TEXTBOOK);
  s->program.architecture = g_intern_string (ls_hardware_architecture (hardware));
  take_defaults_here (said, s);
  if (!is_said (said, "kernels") && (s->dtype == LS_DTYPE_FP32 || s->dtype == LS_DTYPE_TF32))
    ls_strategy_forget_kernels (s);
  take_call_time (ls_cluster_call_time (&hardware->spec), said, s);
  take_other_attention (hardware, s);
}

void
ls_softwares_rebase (const LsSoftwareSpec *software, const LsStrategy *own, GHashTable *said, LsStrategy *ret,
                     LsDiagList *diags)
{
  ls_strategy_copy (ret, &software->defaults);
  ret->gpus = own->gpus;
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_kept = !f->file_only && strcmp (f->key, "kernels") != 0 && is_said (said, f->key);
    g_autofree char *value = is_kept ? ls_field_text (f, own, NULL) : NULL;
    if (value)
      ls_field_set_text (ls_strategy_fields, ret, f->key, value, diags);
  }
}

const char *
ls_softwares_runs_like (const char *named, const LsStrategy *s, const char *architecture)
{
  if (s->lora.rank > 0)
    return RUNS_LIKE_ADAPTERS;
  bool is_textbook = !s->program.software || strcmp (s->program.software, LS_SOFTWARE_TEXTBOOK) == 0;
  const LsSoftwareSpec *like
      = is_textbook ? ls_softwares_textbook () : ls_softwares_find (s->dp_kind, architecture);
  const char *words = named ? named : like ? like->runs_like : NULL;
  return g_intern_string (words ? words : RUNS_LIKE_NOBODY);
}
