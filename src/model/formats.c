#include "model/formats.h"

#include <string.h>

#include <glib.h>

const char *const ls_module_names[LS_N_MODULES + 1] = {
  [LS_MODULE_OTHER] = "",
  [LS_MODULE_QKV] = "qkv",
  [LS_MODULE_PROJ] = "proj",
  [LS_MODULE_FC1] = "fc1",
  [LS_MODULE_FC2] = "fc2",
  [LS_MODULE_EXPERT_FC1] = "expert-fc1",
  [LS_MODULE_EXPERT_FC2] = "expert-fc2",
  [LS_MODULE_SHARED_FC1] = "shared-fc1",
  [LS_MODULE_SHARED_FC2] = "shared-fc2",
  [LS_MODULE_LATENT_DOWN] = "latent-down",
  [LS_MODULE_LATENT_UP] = "latent-up",
  [LS_MODULE_MIXER_IN] = "mixer-in",
  [LS_MODULE_MIXER_OUT] = "mixer-out",
  [LS_MODULE_MTP] = "mtp",
};

const char *const ls_format_names[LS_N_FORMATS + 1] = {
  [LS_FORMAT_OF_ALL] = "",         [LS_FORMAT_BF16] = "bf16",
  [LS_FORMAT_CURRENT] = "current", [LS_FORMAT_BLOCKWISE] = "blockwise",
  [LS_FORMAT_MXFP8] = "mxfp8",     [LS_FORMAT_NVFP4] = "nvfp4",
};

bool
ls_formats_have (const LsFormats *formats, LsFormat which)
{
  return memchr (formats->of, which, sizeof formats->of) != NULL;
}

bool
ls_formats_any (const LsFormats *formats)
{
  bool any = false;
  for (uint32_t m = 0; m < LS_N_MODULES; m++)
    any |= formats->of[m] != LS_FORMAT_OF_ALL;
  return any;
}

/* Which of them a word is; 0: none. */
static uint8_t
place_of (const char *word, const char *const *names)
{
  uint8_t i = 1;
  while (names[i] && strcmp (word, names[i]) != 0)
    i++;
  return names[i] ? i : 0;
}

bool
ls_formats_parse (const char *text, LsFormats *ret_formats)
{
  LsFormats made = { 0 };
  g_auto (GStrv) pairs = g_strsplit (text, ",", -1);
  for (guint i = 0; pairs[i]; i++) {
    char *colon = strchr (pairs[i], ':');
    if (!colon)
      return false;
    *colon = '\0';
    uint8_t module = place_of (pairs[i], ls_module_names), format = place_of (colon + 1, ls_format_names);
    if (module == 0 || format == 0 || made.of[module] != LS_FORMAT_OF_ALL)
      return false;
    made.of[module] = format;
  }
  *ret_formats = made;
  return true;
}

char *
ls_formats_text (const LsFormats *formats)
{
  GString *text = g_string_new (NULL);
  for (uint32_t m = 1; m < LS_N_MODULES; m++)
    if (formats->of[m] != LS_FORMAT_OF_ALL)
      g_string_append_printf (text, "%s%s:%s", text->len > 0 ? "," : "", ls_module_names[m],
                              ls_format_names[formats->of[m]]);
  return g_string_free (text, FALSE);
}
