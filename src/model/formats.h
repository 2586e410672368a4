/* model/formats.h — number formats of products by the kind of module that makes them, where these are not
 * those of the whole model.
 *
 * In a model in a scaled format each linear layer of Transformer Engine may have a recipe of its own:
 * Megatron-LM enters its autocast anew around the layers that a file of patterns names
 * (--te-precision-config-file; NVIDIA/Megatron-LM@d98e8a64, megatron/core/quantization/quant_config.py, and
 * megatron/core/extensions/transformer_engine.py, TEQuantizationRecipe). Such a recipe does not reach layers
 * that are in bf16 altogether (override_nonquantized_autocast is false unless it is said). Embeddings,
 * logits and routers are no linear layers of Transformer Engine, and stay as they are.
 *
 * As text: "qkv:bf16,proj:bf16,mixer-out:mxfp8". */
#ifndef LS_MODEL_FORMATS_H
#define LS_MODEL_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of module that a product is of. */
typedef enum {
  LS_MODULE_OTHER, /* one that has no format of its own */
  LS_MODULE_QKV,   /* with latents: those, and what is made from them */
  LS_MODULE_PROJ,  /* behind attention */
  LS_MODULE_FC1,
  LS_MODULE_FC2,
  LS_MODULE_EXPERT_FC1,
  LS_MODULE_EXPERT_FC2,
  LS_MODULE_SHARED_FC1,
  LS_MODULE_SHARED_FC2,
  LS_MODULE_LATENT_DOWN, /* in front of experts of a latent, and behind them */
  LS_MODULE_LATENT_UP,
  LS_MODULE_MIXER_IN,
  LS_MODULE_MIXER_OUT,
  LS_MODULE_MTP, /* of blocks of multi-token prediction: all products, whatever their kind */
  LS_N_MODULES
} LsModule;

typedef enum {
  LS_FORMAT_OF_ALL, /* none of its own */
  LS_FORMAT_BF16,
  LS_FORMAT_CURRENT, /* fp8, by recipe (LsFp8Recipe) */
  LS_FORMAT_BLOCKWISE,
  LS_FORMAT_MXFP8,
  LS_FORMAT_NVFP4,
  LS_N_FORMATS
} LsFormat;

typedef struct {
  uint8_t of[LS_N_MODULES]; /* LsFormat */
} LsFormats;

/* Words of both, ended by NULL; of OTHER and OF_ALL there are none: "". */
extern const char *const ls_module_names[LS_N_MODULES + 1];
extern const char *const ls_format_names[LS_N_FORMATS + 1];

bool ls_formats_any (const LsFormats *formats);                  /* a module has one of its own    */
bool ls_formats_have (const LsFormats *formats, LsFormat which); /* a module has this one          */

/* "" is none. False, and *ret_formats is not set, if a word is unknown or a module stands twice. */
bool ls_formats_parse (const char *text, LsFormats *ret_formats);
char *ls_formats_text (const LsFormats *formats); /* newly allocated */

#endif
