/* Pins attention to compressed keys and mixed residual streams (DeepSeek-V4) against counts by hand: pairs, FLOPs,
 * parameters, what is kept, what goes from stage to stage. */
#include "ls_test.h"

#include "model_shapes.h"

/* Layers A, S and H of 8 heads of 128 that share a key, in 4 groups on their way out. */
static LsModel
with_compressed_keys (void)
{
  LsModel m = small ();
  m.layers.pattern = (char *) "ASH";
  m.n_kv_heads = 1;
  m.latent.q_lora = 256, m.latent.rope_dim = 64, m.attn.window = 128;
  m.compressed.out_groups = 4, m.compressed.out_lora = 96;
  m.compressed.csa_ratio = 4, m.index.heads = 4, m.index.dim = 64, m.index.top = 512;
  m.compressed.hca_ratio = 32;
  return m;
}

/* By hand, of 4096 tokens: a query meets 126 keys of its window by the mean (128 - 128^2 / 8192), 384 of the 512
 * that are chosen (512 - 4 x 512^2 / 8192), 64 of those of 32 tokens. The indexer scores 4096 x 1024 / 2 pairs. */
static void
compressed_keys_are_met (void)
{
  static const double met[] = { 126, 126 + 384, 126 + 64 };
  LsModel m = with_compressed_keys ();
  uint64_t common = 1024 * 256 + 256 * 1024 + 1024 * 128 + 1024 * 96 + 4 * 96 * 1024;
  uint64_t indexer = 1024 * (4 * 64 + 4) + 256 * 256, mlp = 3 * 1024 * 4096, norms = 2 * 1024 + 256 + 128 + 8;
  uint64_t linear[] = { common, common + 1024 * 512 + indexer, common + 1024 * 256 };
  uint64_t others[] = { norms, norms + 4 * 256 + 128 + 4 * 128 + 64, norms + 32 * 128 + 128 };
  for (uint32_t i = 0; i < 3; i++) {
    g_autoptr (GArray) operators = layer_of (&m, i);
    const LsOperator *attention = find_operator (operators, "attention");
    LS_CHECK_DOUBLE (attention->fwd[0].flops, ==, 4.0 * 4096 * 1024 * met[i]);
    LS_CHECK_DOUBLE (attention->igrad[0].flops, ==, 2.5 * attention->fwd[0].flops);
    LS_CHECK_INT (ls_model_layer_params (&m, i), ==, linear[i] + others[i] + mlp);
    LS_CHECK_INT (n_layer_params (operators), ==, linear[i] + others[i] + mlp);
    LS_CHECK ((find_operator (operators, "index-scores") != NULL) == (i == 1));
    LS_CHECK ((find_operator (operators, "pool") != NULL) == (i > 0));
    LS_CHECK_DOUBLE (find_operator (operators, "out-down")->fwd[0].flops, ==, 2.0 * 4096 * 1024 * 96);
    LS_CHECK_INT (find_operator (operators, "out-down")->kept.saved_bytes, ==, 4096 * 1024 * 2);
  }
  g_autoptr (GArray) chosen = layer_of (&m, 1);
  LS_CHECK_DOUBLE (find_operator (chosen, "index-scores")->fwd[0].flops, ==, 4096.0 * 1024 * 4 * 64);
  LS_CHECK_INT (find_operator (chosen, "index-scores")->kept.saved_bytes, ==, 4096 * 512 * 4);
  LS_CHECK_DOUBLE (find_operator (chosen, "pool")->fwd[0].bytes, ==, 2.0 * 4096 * (4 * 128 + 128 / 4));
  LS_CHECK_INT (ls_model_n_layer_kinds (&m), ==, 3);
  m.index.top = 4096; /* more than there are */
  LS_CHECK_DOUBLE (ls_compressed_pairs (&m, LS_LAYER_CSA, 4096), ==, 1 / 8.0);
}

/* 4 streams of 1024 numbers: products with 24 columns of 4096; passes of 5 and 9 tensors forward, 13 and 14 back.
 * What goes from stage to stage is four times a tensor. */
static void
residual_streams_are_mixed (void)
{
  LsModel m = small ();
  uint64_t before = ls_model_layer_params (&m, 0), all = ls_model_params (&m, 32000),
           tensor = 4096 * 1024 * 2;
  m.halves.streams = 4;
  LS_CHECK_INT (ls_model_layer_params (&m, 0), ==, before + 2 * (24 * 4096 + 24 + 3));
  LS_CHECK_INT (ls_model_params (&m, 32000), ==,
                all + m.n_layers * 2 * (24 * 4096 + 24 + 3) + 4 * 4096 + 4 + 1);
  g_autoptr (GArray) operators = layer_of (&m, 0);
  const LsOperator *in = find_operator (operators, "mlp-streams"),
                   *out = find_operator (operators, "mlp-add");
  LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, 0));
  LS_CHECK_DOUBLE (in->fwd[0].flops, ==, 2.0 * 4096 * 4096 * 24);
  LS_CHECK_DOUBLE (in->fwd[1].bytes, ==, 5.0 * (double) tensor);
  LS_CHECK_DOUBLE (in->igrad[in->n_igrad - 1].bytes, ==, 13.0 * (double) tensor);
  LS_CHECK_INT (in->kept.saved_bytes, ==, 4 * tensor);
  LS_CHECK_DOUBLE (out->fwd[0].bytes, ==, 9.0 * (double) tensor);
  LS_CHECK_DOUBLE (out->igrad[0].bytes, ==, 14.0 * (double) tensor);
  LS_CHECK_INT (out->kept.saved_bytes, ==, tensor);
  LS_CHECK_DOUBLE (find_operator (operators, "mlp-norm")->igrad[0].bytes, ==, 3.0 * (double) tensor);
  LsShard shard = { .tp = 1, .micro_batch = 1, .seq = 4096, .cp = 1, .dtype = LS_DTYPE_BF16 };
  LS_CHECK_INT (ls_boundary_bytes (&m, &shard), ==, tensor);
  LS_CHECK_INT (ls_residual_bytes (&m, &shard), ==, 4 * tensor);
}

/* Four heads of 64 beside 8 heads of queries and 2 of keys, in three layers of four: 512 keys in blocks of 128 are
 * 512 - 512^2 / 8192 = 480 by the mean; 4096^2 / 2 pairs are scored by each head, which writes one number a block,
 * and four blocks are kept for each. */
static void
an_indexer_of_groups_chooses_blocks (void)
{
  LsModel m = small (), without;
  m.attn.window = 512, m.attn.full_every = 4;
  without = m;
  m.index.heads = 4, m.index.dim = 64, m.index.block = 128;
  for (uint32_t i = 0; i < m.n_layers; i++) {
    g_autoptr (GArray) operators = layer_of (&m, i);
    const LsOperator *scores = find_operator (operators, "index-scores");
    uint64_t more = ls_model_layer_params (&m, i) - ls_model_layer_params (&without, i);
    LS_CHECK_INT (more, ==, i % 4 == 3 ? 0 : 1024 * (4 + 1) * 64 + 2 * 64);
    LS_CHECK_INT (n_layer_params (operators), ==, ls_model_layer_params (&m, i));
    if (!LS_CHECK ((scores != NULL) == (i % 4 != 3)) || !scores)
      continue;
    LS_CHECK_DOUBLE (find_operator (operators, "attention")->fwd[0].flops, ==, 4.0 * 4096 * 8 * 128 * 480);
    LS_CHECK_DOUBLE (scores->fwd[0].flops, ==, 4096.0 * 4096 * 4 * 64);
    LS_CHECK_DOUBLE (scores->fwd[1].bytes, ==, 4.0 * 4096 * 4096 / 2 * 4 / 128);
    LS_CHECK_INT (scores->kept.saved_bytes, ==, 4096 * 4 * 4 * 4);
    LS_CHECK_INT (find_operator (operators, "index-query")->kept.saved_bytes, ==, 0);
  }
  LS_CHECK_NEAR (ls_model_flops (&m, 1000, 4096, 1, false) - ls_model_flops (&without, 1000, 4096, 1, false),
                 9 * (6.0 * 4096 * 1024 * 5 * 64 + 3 * 4096.0 * 4096 * 4 * 64), 1e-9);
}

LS_TEST_SUITE (LS_TEST (an_indexer_of_groups_chooses_blocks), LS_TEST (compressed_keys_are_met),
               LS_TEST (residual_streams_are_mixed))
