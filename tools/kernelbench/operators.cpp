/* Memory-bound kernels of Llama-like and MoE layers, and of the vocabulary: steady, as the
 * streams. Shapes: 8192 tokens of hidden size 4096 and 8192. */
#include "bench.h"
#include "compare.h"
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

/* ---- against their references ---- */

/* The kernels of Llama-like layers, of vocabularies and experts, and attention, against
 * their references. */

static constexpr size_t rows = 24, cols = 512;

static void
check_rmsnorm (Checks &checks, cudaStream_t stream, size_t n_rows, size_t h)
{
  Inputs in (stream, n_rows * h, h, 300);
  NormReference r = rmsnorm_reference (in.host_a, in.host_b, in.host_row, n_rows, h, rmsnorm_epsilon);
  Buffer<half> y = poisoned<half> (n_rows * h), dgamma = poisoned<half> (h);
  Buffer<float> rstd = poisoned<float> (n_rows), partial = poisoned<float> (n_rms_partials * h);
  auto name = [&] (const char *what) { return format ("%s %zux%zu", what, n_rows, h); };

  rmsnorm (stream, in.a.get (), in.row.get (), y.get (), rstd.get (), n_rows, h);
  checks.expect_close (name ("rmsnorm-fwd"), download (stream, y), r.y, fp16_tolerance ());
  checks.expect_close (name ("rmsnorm-fwd rstd"), download (stream, rstd), r.rstd, fp32_tolerance ());
  y = poisoned<half> (n_rows * h);
  rmsnorm_bwd (stream, in.b.get (), in.a.get (), in.row.get (), rstd.get (), partial.get (), y.get (), dgamma.get (), n_rows, h);
  checks.expect_close (name ("rmsnorm-bwd"), download (stream, y), r.dx, fp16_tolerance ());
  checks.expect_close (name ("rmsnorm-bwd gamma"), download (stream, dgamma), r.dgamma, fp16_tolerance ());
}

static void
check_swiglu (Checks &checks, cudaStream_t stream)
{
  size_t n = rows * cols;
  Inputs in (stream, 2 * n, cols, 310);
  Buffer<half> y = poisoned<half> (n), dx = poisoned<half> (2 * n);
  Vector out (n), gradient (2 * n);
  for (size_t i = 0; i < n; i++) {
    size_t gate = i / cols * 2 * cols + i % cols, up = gate + cols;
    out[i] = swiglu (in.host_a[gate], in.host_a[up]);
    swiglu_bwd (in.host_a[gate], in.host_a[up], in.host_b[i], &gradient[gate], &gradient[up]);
  }
  swiglu (stream, in.a.get (), y.get (), rows, cols);
  checks.expect_close ("swiglu", download (stream, y), out, fp16_tolerance ());
  swiglu_bwd (stream, in.b.get (), in.a.get (), dx.get (), rows, cols);
  checks.expect_close ("swiglu-bwd", download (stream, dx), gradient, fp16_tolerance ());
}

static void
check_rope (Checks &checks, cudaStream_t stream)
{
  constexpr size_t sequences = 2, seq = 48, heads = 3, d = 128, n = sequences * seq * heads * d;
  constexpr float base = 10000;
  Buffer<half> x = random_normal<half> (stream, n, 320), y = poisoned<half> (n);
  Buffer<float2> table (seq * d / 2);
  Vector host = download (stream, x);
  rope_table (stream, table.get (), seq, d, base);
  rope (stream, x.get (), y.get (), table.get (), sequences, seq, heads, d, false);
  checks.expect_close ("rope-fwd", download (stream, y), rope_reference (host, seq, heads, d, base, 1), fp16_tolerance ());
  y = poisoned<half> (n);
  rope (stream, x.get (), y.get (), table.get (), sequences, seq, heads, d, true);
  checks.expect_close ("rope-bwd", download (stream, y), rope_reference (host, seq, heads, d, base, -1), fp16_tolerance ());
}

static void
check_vocabulary (Checks &checks, cudaStream_t stream)
{
  constexpr int n_words = 1000; /* no multiple of what a block takes */
  Inputs in (stream, rows * n_words, 1, 330);
  Buffer<int> target (rows);
  Buffer<float> loss = poisoned<float> (rows), lse = poisoned<float> (rows), grad (n_words * cols);
  Buffer<half> dx = poisoned<half> (rows * n_words);
  fill_ids (stream, target.get (), rows, n_words, 331);
  std::vector<int> ids = download_raw (stream, target);
  CrossEntropyReference r = cross_entropy_reference (in.host_a, ids, n_words);

  cross_entropy (stream, in.a.get (), target.get (), loss.get (), lse.get (), rows, n_words);
  checks.expect_close ("cross-entropy", download (stream, loss), r.loss, fp32_tolerance ());
  float scale = 1024; /* as with loss scaling: fp16 would flush the small ones */
  for (double &v : r.dx)
    v *= scale;
  cross_entropy_bwd (stream, in.a.get (), target.get (), lse.get (), dx.get (), rows, n_words, scale);
  checks.expect_close ("cross-entropy-bwd", download (stream, dx), r.dx, fp16_tolerance ());

  KB_CHECK (cudaMemsetAsync (grad.get (), 0, grad.size () * sizeof (float), stream));
  fill_ids (stream, target.get (), rows, 7, 332); /* words that come several times */
  ids = download_raw (stream, target);
  embedding_grad (stream, in.b.get (), target.get (), grad.get (), rows, cols);
  Vector dy (in.host_b.begin (), in.host_b.begin () + rows * cols);
  checks.expect_close ("embedding-grad", download (stream, grad), embedding_grad_reference (dy, ids, n_words, cols), fp32_tolerance ());
}

static void
check_routing (Checks &checks, cudaStream_t stream)
{
  constexpr size_t tokens = 40, k = 2;
  constexpr int n_experts = 8;
  Buffer<int> experts (tokens * k), source (tokens * k), place (tokens * k);
  Buffer<half> x = random_normal<half> (stream, tokens * cols, 340), y = poisoned<half> (tokens * k * cols), back = poisoned<half> (tokens * cols);
  Buffer<float> weight = random_normal<float> (stream, tokens * k, 341);
  std::vector<int> host_source, host_place;
  fill_ids (stream, experts.get (), tokens * k, n_experts, 342);
  route (download_raw (stream, experts), k, n_experts, &host_source, &host_place);
  KB_CHECK (cudaMemcpy (source.get (), host_source.data (), tokens * k * sizeof (int), cudaMemcpyHostToDevice));
  KB_CHECK (cudaMemcpy (place.get (), host_place.data (), tokens * k * sizeof (int), cudaMemcpyHostToDevice));

  gather (stream, x.get (), source.get (), y.get (), tokens * k, cols);
  checks.expect_close ("moe-permute", download (stream, y), permute_reference (download (stream, x), host_source, cols), fp16_tolerance ());
  unpermute (stream, y.get (), place.get (), weight.get (), back.get (), tokens, k, cols);
  checks.expect_close ("moe-unpermute", download (stream, back),
                unpermute_reference (download (stream, y), host_place, download (stream, weight), k, cols), fp16_tolerance ());
}

/* P and dS are rounded to 16 bits between two products, which adds to the rounding of the
 * result. */
template <typename T> static void
check_attention (Checks &checks, cudaStream_t stream, const char *number, const AttentionShape &s, double tolerance)
{
  size_t n = s.sequences * s.seq * s.heads * s.d, n_kv = s.sequences * s.seq * s.kv_heads * s.d;
  Buffer<T> q = random_normal<T> (stream, n, 350), k = random_normal<T> (stream, n_kv, 351), v = random_normal<T> (stream, n_kv, 352);
  Buffer<T> dout = random_normal<T> (stream, n, 353), out = poisoned<T> (n), dq = poisoned<T> (n), dk = poisoned<T> (n_kv), dv = poisoned<T> (n_kv);
  Buffer<float> lse = poisoned<float> (s.sequences * s.heads * s.seq), scratch = poisoned<float> (attention_scratch (s));
  AttentionReference r = attention_reference (s, download (stream, q), download (stream, k), download (stream, v), download (stream, dout));
  auto expect = [&] (const char *what, const auto &got, const Vector &reference, double allowed) {
    checks.expect_close (format ("attention %s %s d=%zu%s%s", number, what, s.d, s.is_causal ? " causal" : "", s.kv_heads < s.heads ? " gqa" : ""),
                  download (stream, got), reference, allowed);
  };

  attention (stream, s, q.get (), k.get (), v.get (), out.get (), lse.get ());
  expect ("fwd", out, r.out, 2 * tolerance);
  expect ("fwd lse", lse, r.lse, tolerance);
  attention_bwd (stream, s, q.get (), k.get (), v.get (), out.get (), lse.get (), dout.get (), scratch.get (), dq.get (), dk.get (), dv.get ());
  expect ("bwd dq", dq, r.dq, 3 * tolerance);
  expect ("bwd dk", dk, r.dk, 3 * tolerance);
  expect ("bwd dv", dv, r.dv, 3 * tolerance);
}

static void
check_all_attention (Checks &checks, cudaStream_t stream, bool is_causal)
{
  auto in = [&] (const char *number, const std::function<void ()> &check) {
    std::string kernel = std::string ("attention ") + number;
    checks.run ({ kernel + " fwd", kernel + " bwd" }, check);
  };
  in ("fp16", [&] {
    check_attention<half> (checks, stream, "fp16", { 2, 192, 2, 2, 64, is_causal }, fp16_tolerance ());
    check_attention<half> (checks, stream, "fp16", { 1, 192, 4, 2, 128, is_causal }, fp16_tolerance ());
  });
  in ("bf16", [&] {
    check_attention<__nv_bfloat16> (checks, stream, "bf16", { 1, 192, 2, 1, 128, is_causal }, bf16_tolerance ());
    check_attention<__nv_bfloat16> (checks, stream, "bf16", { 1, 192, 2, 2, 96, is_causal }, bf16_tolerance ());
    check_attention<__nv_bfloat16> (checks, stream, "bf16", { 1, 128, 2, 2, 64, is_causal }, bf16_tolerance ());
  });
}

void
check_operators (Checks &checks, cudaStream_t stream, int capability)
{
  checks.run ({ "rmsnorm-fwd", "rmsnorm-bwd" }, [&] {
    check_rmsnorm (checks, stream, 37, 1024);
    check_rmsnorm (checks, stream, 37, 8192);
    check_rmsnorm (checks, stream, n_rms_partials + 5, 2056); /* blocks with two rows; a vector in the second column of threads */
  });
  checks.run ({ "swiglu", "swiglu-bwd" }, [&] { check_swiglu (checks, stream); });
  checks.run ({ "rope-fwd", "rope-bwd" }, [&] { check_rope (checks, stream); });
  checks.run ({ "cross-entropy", "cross-entropy-bwd", "embedding-grad" }, [&] { check_vocabulary (checks, stream); });
  checks.run ({ "moe-permute", "moe-unpermute" }, [&] { check_routing (checks, stream); });
  for (bool is_causal : { true, false })
    if (capability >= attention_capability)
      check_all_attention (checks, stream, is_causal);
}

}
