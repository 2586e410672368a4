/* What layers have next to attention and an MLP, and widths that differ: what is legal of these. */
#include "model/ngram.h"
#include "strategy/strategy_rules.h"

/* Convolutions of keys, and differences: calls of flash attention, of pairs of heads. */
static void
check_difference (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->qk_conv > 0 && m->n_kv_heads % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the %u heads of keys that are convolved; got %u",
              m->n_kv_heads, s->tp);
  if (m->kv_conv + m->qk_conv > 0 && s->cp > 1)
    unsupported (diags, "/cp",
                 "keys that meet those of tokens on another rank are not modelled; expected 1, got %u",
                 s->cp);
  if (!m->difference)
    return;
  uint32_t second = m->noise_heads > 0 ? m->noise_heads : m->n_heads / 2;
  if (second % s->tp != 0 || m->n_kv_heads / 2 % s->tp != 0)
    conflict (diags, "/tp",
              "expected a divisor of the %u heads of second attentions and %u pairs of heads of keys; got %u",
              second, m->n_kv_heads / 2, s->tp);
  if (s->attention == LS_ATTENTION_UNFUSED || s->cp > 1 || s->fp8_attention != LS_FP8_ATTENTION_NONE)
    unsupported (
        diags,
        s->cp > 1                                  ? "/cp"
            : s->attention == LS_ATTENTION_UNFUSED ? "/attention"
                                                   : "/fp8_attention",
        "differences of two attentions are modelled in flash kernels of 16 bits, of whole sequences");
}

/* Inputs of layers come from the first stage, shared keys and values from a layer before. */
void
check_beside (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->pp > 1 && m->layer_input + m->kv_shared_layers > 0)
    unsupported (
        diags, "/pp",
        "inputs of layers, and keys and values that layers share, on another stage are not modelled; "
        "expected 1, got %u",
        s->pp);
  if (s->cp > 1 && m->kv_shared_layers > 0)
    unsupported (diags, "/cp",
                 "keys and values that layers share in sequences that are cut are not modelled; expected 1, "
                 "got %u",
                 s->cp);
  check_difference (s, m, diags);
  if (ls_ngram_rows (m) % s->tp != 0)
    conflict (diags, "/tp",
              "expected a divisor of the %" G_GUINT64_FORMAT " rows of tables of several tokens; got %u",
              ls_ngram_rows (m), s->tp);
  if (m->layer_vocab % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the %u rows of the table of layers' inputs; got %u",
              m->layer_vocab, s->tp);
}

void
check_widths (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (!ls_model_widths_differ (m))
    return;
  uint32_t first[LS_MAX_MODEL_KINDS], n = ls_model_first_of_kinds (m, first);
  for (uint32_t i = 0; i < n; i++) {
    LsModel own = ls_model_of_kind (m, ls_model_layer_kind (m, first[i]));
    uint32_t heads = own.n_heads, kv_heads = own.n_kv_heads, ffn = own.ffn;
    bool is_cut = heads % s->tp == 0 && (kv_heads % s->tp == 0 || s->tp % kv_heads == 0);
    bool is_usual = heads == m->n_heads && kv_heads == m->n_kv_heads && ffn == m->ffn;
    if (is_usual || (is_cut && ffn % s->tp == 0))
      continue;
    conflict (diags, "/tp",
              "expected a divisor of the %u heads and the ffn width %u of layer %u, and a "
              "divisor or a multiple of its %u key-value heads; got %u",
              heads, ffn, first[i], kv_heads, s->tp);
    return;
  }
}
