/* Memory-bound kernels of Llama-like and MoE layers, and of the vocabulary: steady, as the
 * streams. Shapes: 8192 tokens of hidden size 4096 and 8192. */
#include "bench.h"
#include "ops.h"

namespace kb {

static constexpr size_t tokens = 8192, seq = 2048, head_dim = 128;
static constexpr int vocab = 128256; /* Llama 3 */
static constexpr size_t loss_rows = 2048;
static constexpr int n_experts = 64;
static constexpr size_t top_k = 2;
static constexpr size_t n_sets = 3;
static constexpr double case_s = 0.2, elt = 2;

namespace {

struct Case {
  const char *name;
  size_t rows, cols;
  double bytes;
  Launch launch;
};

/* n_sets of three fp16 tensors; routing and moments for `tokens` rows. */
struct Tensors {
  size_t n;
  Buffer<half> halves, vectors;
  Buffer<float> rows, partial, table;
  Buffer<int> words, source, place;

  Tensors (size_t n_elements, size_t cols, cudaStream_t stream)
    : n (n_elements), halves (3 * n_sets * n), vectors (n ? 2 * cols : 0), rows (n ? 3 * tokens * top_k : 0),
      partial (n ? n_rms_partials * cols : 0), table (n ? (size_t) vocab * cols : 0), words (n ? tokens : 0),
      source (n ? tokens * top_k : 0), place (n ? tokens * top_k : 0)
  {
    if (n == 0)
      return;
    fill_normal (stream, halves.get (), halves.size (), 1, 400);
    fill_normal (stream, vectors.get (), vectors.size (), 1, 401);
    fill_normal (stream, rows.get (), rows.size (), 1, 402);
    fill_ids (stream, words.get (), tokens, vocab, 403);
    KB_CHECK (cudaMemsetAsync (table.get (), 0, table.size () * sizeof (float), stream));
    fill_routing (stream);
  }
  half *x (int set) const { return tensor (0, set); }
  half *dy (int set) const { return tensor (1, set); }
  half *y (int set) const { return tensor (2, set); }

private:
  half *tensor (int which, int set) const { return halves.get () + (which * n_sets + set % n_sets) * n; }

  void fill_routing (cudaStream_t stream)
  {
    std::vector<int> expert (tokens * top_k), from, to;
    Buffer<int> drawn (expert.size ());
    fill_ids (stream, drawn.get (), expert.size (), n_experts, 404);
    KB_CHECK (cudaStreamSynchronize (stream));
    KB_CHECK (cudaMemcpy (expert.data (), drawn.get (), expert.size () * sizeof (int), cudaMemcpyDeviceToHost));
    route (expert, top_k, n_experts, &from, &to);
    KB_CHECK (cudaMemcpy (source.get (), from.data (), from.size () * sizeof (int), cudaMemcpyHostToDevice));
    KB_CHECK (cudaMemcpy (place.get (), to.data (), to.size () * sizeof (int), cudaMemcpyHostToDevice));
  }
};

}

static void
measure (Bench &bench, const Case &c)
{
  Row row { "operators", c.name, format ("%zux%zu", c.rows, c.cols), "fp16", c.bytes };
  bench.measure (row, case_s, [&] (Row &measured) {
    Timing time = bench.steady (c.launch);
    if (bench.copy_bytes_per_s > 0)
      measured.note = format ("of_copy=%.3f", row.bytes / time.us * 1e6 / bench.copy_bytes_per_s);
    return time;
  });
}

static void
bench_hidden (Bench &bench, size_t hidden)
{
  cudaStream_t stream = bench.stream ();
  size_t n = tokens * hidden, heads = hidden / head_dim, ffn = hidden; /* of a rank: 2 ffn inputs fit a set */
  Tensors t (bench.is_dry () ? 0 : 2 * n, hidden, stream);
  Buffer<float2> turns (bench.is_dry () ? 0 : seq * head_dim / 2);
  double bytes = elt * (double) n;
  if (!bench.is_dry ())
    rope_table (stream, turns.get (), seq, head_dim, 10000);
  float *rstd = t.rows.get (), *weight = rstd + tokens * top_k;

  const Case cases[] = {
    { "rmsnorm-fwd", tokens, hidden, 2 * bytes,
      [&] (int i) { rmsnorm (stream, t.x (i), t.vectors.get (), t.y (i), rstd, tokens, hidden); } },
    { "rmsnorm-bwd", tokens, hidden, 3 * bytes,
      [&] (int i) {
        rmsnorm_bwd (stream, t.dy (i), t.x (i), t.vectors.get (), rstd, t.partial.get (), t.y (i), t.vectors.get () + hidden, tokens, hidden);
      } },
    { "swiglu", tokens, ffn, 3 * bytes, [&] (int i) { swiglu (stream, t.x (i), t.y (i), tokens, ffn); } },
    { "swiglu-bwd", tokens, ffn, 5 * bytes, [&] (int i) { swiglu_bwd (stream, t.dy (i), t.x (i), t.y (i), tokens, ffn); } },
    { "rope-fwd", tokens, hidden, 2 * bytes,
      [&] (int i) { rope (stream, t.x (i), t.y (i), turns.get (), tokens / seq, seq, heads, head_dim, false); } },
    { "rope-bwd", tokens, hidden, 2 * bytes,
      [&] (int i) { rope (stream, t.x (i), t.y (i), turns.get (), tokens / seq, seq, heads, head_dim, true); } },
    { "embedding-lookup", tokens, hidden, 2 * bytes, /* words of a table as large as a set */
      [&] (int i) { gather (stream, t.x (i), t.source.get (), t.y (i), tokens, hidden); } },
    { "embedding-grad", tokens, hidden, 5 * bytes, /* fp32 sums, read and written */
      [&] (int i) { embedding_grad (stream, t.dy (i), t.words.get (), t.table.get (), tokens, hidden); } },
    { "moe-permute", tokens * top_k, hidden, (1 + top_k) * bytes,
      [&] (int i) { gather (stream, t.x (i), t.source.get (), t.y (i), tokens * top_k, hidden); } },
    { "moe-unpermute", tokens, hidden, (1 + top_k) * bytes,
      [&] (int i) { unpermute (stream, t.x (i), t.place.get (), weight, t.y (i), tokens, top_k, hidden); } },
  };
  for (const Case &c : cases)
    measure (bench, c);
}

static void
bench_loss (Bench &bench)
{
  cudaStream_t stream = bench.stream ();
  size_t n = loss_rows * (size_t) vocab;
  Tensors t (bench.is_dry () ? 0 : n, 8, stream);
  float *loss = t.rows.get (), *lse = loss + tokens;
  const Case cases[] = {
    { "cross-entropy", loss_rows, (size_t) vocab, elt * (double) n,
      [&] (int i) { cross_entropy (stream, t.x (i), t.words.get (), loss, lse, loss_rows, vocab); } },
    { "cross-entropy-bwd", loss_rows, (size_t) vocab, 2 * elt * (double) n,
      [&] (int i) { cross_entropy_bwd (stream, t.x (i), t.words.get (), lse, t.y (i), loss_rows, vocab, 1); } },
  };
  for (const Case &c : cases)
    measure (bench, c);
}

void
bench_operators (Bench &bench)
{
  bench.wake_up ();
  bench_hidden (bench, 4096);
  bench_hidden (bench, 8192);
  bench_loss (bench);
}

}
