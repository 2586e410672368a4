/* The words of the vocabulary: what megatron/training/tokenizer of Megatron-LM makes of options. */
#include "data/launch/megatron/megatron_rules.h"

#include <string.h>

#include "data/shell/shell.h"

/* Sizes of published vocabularies, and the tokenizers that have no other, but for Llama2Tokenizer. */
static const struct {
  const char *tokenizer;
  guint64 vocab;
  const char *source;
} tokenizers[] = {
  { "GPT2BPETokenizer", 50257, "the vocabulary of GPT-2" },
  { "BertWordPieceLowerCase", 30522, "the vocabulary of uncased BERT" },
  { "BertWordPieceCase", 28996, "the vocabulary of cased BERT" },
  { "Llama2Tokenizer", 32000, "the vocabulary of Llama 2" },
};

/* Which tokenizer a script takes by itself: args_defaults of pretrain_X.py, until --tokenizer-type was
 * required. */
static const char *
tokenizer_of (LaunchJob *job)
{
  const char *type = option_text (job, "tokenizer-type");
  if (type || !job->script || !option_is_there (job, "vocab-file"))
    return type;
  bool is_bert
      = g_str_has_prefix (job->script, "pretrain_bert") || g_str_has_prefix (job->script, "pretrain_t5");
  return g_str_has_prefix (job->script, "pretrain_gpt") ? "GPT2BPETokenizer"
      : is_bert                                         ? "BertWordPieceLowerCase"
                                                        : NULL;
}

/* Llama2Tokenizer reads any model of SentencePiece: one that has a name of its own is another vocabulary.
 * Llama 2's and those of the same size are published as "tokenizer.model". */
static bool
has_own_name (const LaunchJob *job)
{
  static const char *const same[] = { "llama", "mistral", "mixtral", "tokenizer.model" };
  const char *said = launch_words_text (job->words, "tokenizer-model"), *path = said ? said : "";
  g_autofree char *small = g_ascii_strdown (path, -1);
  for (guint i = 0; i < G_N_ELEMENTS (same); i++)
    if (strstr (small, same[i]))
      return false;
  return *path && !g_str_has_suffix (path, (const char[]) { LS_SHELL_HOLE_END, 0 });
}

static guint64
size_of (LaunchJob *job, const char *type, bool is_padded)
{
  guint64 extra = option_number (job, "vocab-extra-ids");
  for (guint i = 0; i < G_N_ELEMENTS (tokenizers) && type; i++) {
    if (strcmp (tokenizers[i].tokenizer, type) != 0)
      continue;
    if (strcmp (type, "Llama2Tokenizer") == 0 && has_own_name (job)) {
      if (!is_padded)
        import_open (job->import, "vocab", "how many words --tokenizer-model has: Llama2Tokenizer reads any");
      return 0;
    }
    import_infer (job->import, "vocab %" G_GUINT64_FORMAT ": %s, which %s has%s", tokenizers[i].vocab + extra,
                  tokenizers[i].source, type, extra > 0 ? ", and --vocab-extra-ids" : "");
    return tokenizers[i].vocab + extra;
  }
  bool is_of_hub = !type || strcmp (type, "HuggingFaceTokenizer") == 0;
  guint64 words = is_of_hub && !is_padded
      ? import_vocab_of_tokenizer (job->import, option_text (job, "tokenizer-model"))
      : 0;
  return words > 0 ? words + extra : 0;
}

void
megatron_vocab (LaunchJob *job)
{
  guint64 vocab = import_has_model (job->import, "vocab") ? job->import->model.vocab : 0,
          to = option_number (job, "pad-vocab-size-to"), padded = option_number (job, "padded-vocab-size");
  vocab = vocab ? vocab : size_of (job, tokenizer_of (job), to > 0 || padded > 0);
  if (to > 0 && to < vocab)
    import_unknown (job->import,
                    "pad-vocab-size-to %" G_GUINT64_FORMAT ": less than the %" G_GUINT64_FORMAT " words", to,
                    vocab);
  if (!to && !vocab)
    to = padded;
  if (to > 0 && to >= vocab)
    import_padded_vocab (job->import, to);
  else if (vocab > 0)
    import_set_model_number (job->import, "vocab", vocab);
}
