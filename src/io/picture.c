#include "io/picture.h"

#include <glib/gstdio.h>
#include <string.h>

#include <lockstep/error.h>

#include "io/gnuplot.h"

static const char *
picture_suffix (const char *path, GError **error)
{
  if (g_str_has_suffix (path, ".svg"))
    return ".svg";
  if (g_str_has_suffix (path, ".png"))
    return ".png";
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s: expected a name that ends in .svg or .png", path);
  return NULL;
}

/* The picture is checked first: it is what the user named. */
gboolean
ls_picture_init (LsPicture *p, const char *path, GError **error)
{
  *p = (LsPicture){ 0 };
  if (!ls_write_file_check (path, error))
    return FALSE;
  p->suffix = picture_suffix (path, error);
  if (!p->suffix)
    return FALSE;
  p->path = g_strdup (path);
  p->stem = g_strndup (path, strlen (path) - strlen (p->suffix));
  p->data = g_strconcat (p->stem, ".dat", NULL);
  p->script = g_strconcat (p->stem, ".gp", NULL);
  return ls_write_file_check (p->data, error) && ls_write_file_check (p->script, error) && ls_gnuplot_check (error);
}

void
ls_picture_clear (LsPicture *p)
{
  g_free (p->path);
  g_free (p->stem);
  g_free (p->data);
  g_free (p->script);
}

gboolean
ls_picture_check (const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  return ls_picture_init (&picture, path, error);
}

static gboolean
is_new (const char *path)
{
  GStatBuf info;
  return g_lstat (path, &info) != 0;
}

gboolean
ls_picture_draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user, GError **error)
{
  gboolean is_data_new = is_new (p->data), is_script_new = is_new (p->script);
  if (ls_write_file (p->data, write_data, user, error) && ls_write_file (p->script, write_script, user, error)
      && ls_gnuplot_run (p->script, p->path, error))
    return TRUE;
  if (is_data_new)
    g_unlink (p->data);
  if (is_script_new)
    g_unlink (p->script);
  return FALSE;
}

/* The folder keeps a name from being a command ("<ls", "|cat"), a device ("+") or
 * somebody's home. */
char *
ls_picture_quote (const LsPicture *p, const char *suffix)
{
  g_autofree char *name = g_path_get_basename (p->stem), *path = g_strconcat ("./", name, suffix, NULL);
  return ls_gnuplot_quote (path);
}

void
ls_picture_write_terminal (const LsPicture *p, FILE *out, int width, int height, const char *svg_fonts,
                           const char *png_fonts)
{
  g_autofree char *quoted = ls_picture_quote (p, p->suffix);
  fprintf (out, "if (!exists('output')) output = %s\n", quoted);
  fprintf (out,
           "%s # points; pixels in SVG\n"
           "if (output[strlen(output)-3:] eq '.svg') {\n"
           "  %s\n"
           "  set terminal svg enhanced size %d,%d dynamic font 'DejaVu Sans,12' background '#ffffff'\n"
           "} else { if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {\n"
           "  set terminal pngcairo enhanced size %d,%d font 'DejaVu Sans,9.5'\n"
           "} else {\n"
           "  set terminal png enhanced truecolor size %d,%d\n"
           "}}\n"
           "if (!exists('to_stdout')) set output output\n\n",
           png_fonts, svg_fonts, width, height, width, height, width, height);
}
