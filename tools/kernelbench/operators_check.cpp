/* The kernels of Llama-like layers, of vocabularies and experts, and attention, against
 * their references. */
#include "bench.h"
#include "compare.h"

namespace kb {

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
