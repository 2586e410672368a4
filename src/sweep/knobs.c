#include "sweep/knobs.h"

#include <string.h>

#include "io/field_write.h"
#include "io/read_strategy.h"
#include "parallel/strategy_idle.h"

char *
ls_shell_quote (const char *word)
{
  bool is_plain = *word != '\0';
  for (const char *c = word; *c; c++)
    is_plain &= g_ascii_isalnum (*c) || strchr ("_-./:=,+@%", *c) != NULL;
  return is_plain ? g_strdup (word) : g_shell_quote (word);
}

static const char *
attention_name (int attention)
{
  return attention == LS_ATTENTION_FLASH ? "flash" : "unfused";
}

/* "3,4x14,2"; NULL: by themselves. */
static char *
layers_text (const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, "layers_per_chunk"), s, NULL);
}

static void
append_layers (GString *out, const LsStrategy *s)
{
  g_autofree char *layers = layers_text (s);
  if (layers)
    g_string_append_printf (out, " --layers-per-chunk %s", layers);
}

static void
append_zero (GString *out, const LsStrategy *s)
{
  g_string_append_printf (out, " --zero %u", s->zero_stage);
  if (s->zero_group > 0)
    g_string_append_printf (out, "@%u", s->zero_group);
}

/* The knobs that most jobs leave alone: those behind this key, where they differ from what
 * they would be by themselves. */
#define LAST_USUAL_KEY "layers_per_chunk"

static void
append_unusual (GString *out, const LsStrategy *s, const LsStrategy *defaults)
{
  LsStrategy blank, filled;
  ls_strategy_copy (&filled, s);
  ls_strategy_fill_auto (&filled);
  ls_strategy_init (&blank);
  blank.tp = s->tp;
  blank.pp = s->pp;
  blank.zero_stage = s->zero_stage;
  blank.dp_overlap = s->dp_overlap;
  blank.recompute_method = s->recompute_method;
  ls_strategy_fill_auto (&blank);
  for (const LsField *f = ls_field_find (ls_strategy_fields, LAST_USUAL_KEY) + 1; f->key; f++) {
    g_autofree char *text = ls_field_text (f, &filled, NULL), *usual = ls_field_text (f, &blank, NULL);
    g_autofree char *other = defaults ? ls_field_text (f, defaults, NULL) : NULL;
    bool is_usual = g_strcmp0 (text, usual) == 0 && (!other || strcmp (text, other) == 0 || strcmp (other, "auto") == 0);
    if (!text || is_usual)
      continue;
    g_autofree char *flag = g_strdelimit (g_strdup (f->key), "_", '-');
    bool is_switch = f->kind == LS_FIELD_BOOL && strcmp (text, "true") == 0;
    if (f->kind == LS_FIELD_BOOL && !is_switch)
      g_string_append_printf (out, " --%s 0", flag);
    else
      g_string_append_printf (out, is_switch ? " --%s" : " --%s %s", flag, text);
  }
  ls_strategy_clear (&blank);
  ls_strategy_clear (&filled);
}

char *
ls_knobs_format (const LsStrategy *s)
{
  return ls_knobs_format_over (s, NULL);
}

char *
ls_knobs_format_over (const LsStrategy *s, const LsStrategy *defaults)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "--gpus %u --tp %u --pp %u --dp %u --cp %u --ep %u --vpp %u", s->gpus, s->tp, s->pp,
                          s->dp, s->cp, s->ep, s->vpp);
  if (s->sp || (defaults && defaults->sp))
    g_string_append (out, s->sp ? " --sp" : " --sp 0");
  append_zero (out, s);
  g_string_append_printf (out, " --dp-kind %s --dp-overlap %d --tp-overlap %d --tp-async %d --p2p %s --schedule %s",
                          ls_dp_kind_name (s->dp_kind), s->dp_overlap, s->tp_overlap, s->tp_async, ls_p2p_name (s->p2p),
                          s->schedule);
  g_string_append_printf (out, " --micro-batch %u --global-batch %u --seq %u --recompute %s --attention %s",
                          s->micro_batch, s->global_batch, s->seq, ls_recompute_name (s->recompute),
                          attention_name (s->attention));
  g_string_append_printf (out, " --dtype %s --grad-dtype %s", ls_dtype_name ((LsDtype) s->dtype),
                          ls_dtype_name ((LsDtype) s->grad_dtype));
  append_layers (out, s);
  if (!s->grad_norm)
    g_string_append (out, " --no-grad-norm");
  append_unusual (out, s, defaults);
  return g_string_free (out, FALSE);
}

char *
ls_knobs_summary (const LsStrategy *s)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "tp %u%s, pp %u", s->tp, s->sp ? " + sp" : "", s->pp);
  if (s->vpp > 1)
    g_string_append_printf (out, " x %u chunks", s->vpp);
  g_autofree char *layers = layers_text (s);
  if (layers)
    g_string_append_printf (out, " of %s layers", layers);
  g_string_append_printf (out, ", dp %u", s->dp);
  if (s->zero_stage > 0)
    g_string_append_printf (out, " (ZeRO-%u)", s->zero_stage);
  if (s->ep > 1)
    g_string_append_printf (out, ", ep %u", s->ep);
  if (s->ep > 1 && s->etp != s->tp)
    g_string_append_printf (out, " x %u", s->etp);
  if (s->pp > 1)
    g_string_append_printf (out, ", %s", s->schedule);
  g_string_append_printf (out, ", micro-batch %u of %u, %s", s->micro_batch, s->global_batch,
                          ls_dtype_name ((LsDtype) s->dtype));
  if (s->recompute != LS_RECOMPUTE_NONE && !ls_strategy_recomputes_nothing (s))
    g_string_append_printf (out, ", %s recompute", ls_recompute_name (s->recompute));
  if (s->software)
    g_string_append_printf (out, ", software %s", s->software);
  if (s->kernels)
    g_string_append_printf (out, ", kernels %s", s->kernels);
  return g_string_free (out, FALSE);
}
