#include "show/plot/picture.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep/error.h>

#include "show/plot/gnuplot.h"

static const char *const suffixes[] = { ".svg", ".png", ".gp" };

static const char *
suffix_of (const char *path, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (g_str_has_suffix (path, suffixes[i]))
      return suffixes[i];
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               "%s: expected a name that ends in .svg or .png, or in .gp for the script and its data", path);
  return NULL;
}

/* The picture is checked first: it is what the user named. */
gboolean
ls_picture_init (LsPicture *p, const char *path, GError **error)
{
  *p = (LsPicture) { 0 };
  if (!ls_write_file_check (path, error))
    return FALSE;
  const char *suffix = suffix_of (path, error);
  if (!suffix)
    return FALSE;
  bool is_script = strcmp (suffix, ".gp") == 0;
  p->suffix = is_script ? ".svg" : suffix;
  p->path = g_strdup (path);
  p->stem = g_strndup (path, strlen (path) - strlen (suffix));
  p->data = is_script ? g_strconcat (p->stem, ".dat", NULL) : NULL;
  return is_script ? ls_write_file_check (p->data, error) : ls_gnuplot_check (error);
}

void
ls_picture_clear (LsPicture *p)
{
  g_free (p->path);
  g_free (p->stem);
  g_free (p->data);
}

gboolean
ls_picture_check (const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  return ls_picture_init (&picture, path, error);
}

/* ---- as a script ---- */

static gboolean
is_new (const char *path)
{
  GStatBuf info;
  return g_lstat (path, &info) != 0;
}

static gboolean
keep (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user, GError **error)
{
  gboolean is_data_new = is_new (p->data);
  if (ls_write_file (p->data, write_data, user, error) && ls_write_file (p->path, write_script, user, error))
    return TRUE;
  if (is_data_new)
    g_unlink (p->data);
  return FALSE;
}

/* ---- drawn ---- */

/* A file without a name that holds what `write` writes, or NULL. */
static FILE *
written (LsWriteFunc write, void *user, GError **error)
{
  FILE *file = tmpfile ();
  if (file && !write (file, user, error)) {
    fclose (file);
    return NULL;
  }
  if (file && fflush (file) == 0 && !ferror (file))
    return file;
  g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write a temporary file: %s", g_strerror (errno));
  if (file)
    fclose (file);
  return NULL;
}

static gboolean
draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user, GError **error)
{
  FILE *data = written (write_data, user, error), *script = data ? written (write_script, user, error) : NULL;
  gboolean ok = script && ls_gnuplot_run (script, data, p->path, error);
  if (data)
    fclose (data);
  if (script)
    fclose (script);
  return ok;
}

gboolean
ls_picture_draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user,
                 GError **error)
{
  return (p->data ? keep : draw) (p, write_data, write_script, user, error);
}

/* ---- in the script ---- */

/* The name of a file beside the script as gnuplot's string, newly allocated. The folder keeps a
 * name from being a command ("<ls", "|cat"), a device ("+") or somebody's home. */
static char *
quote_name (const LsPicture *p, const char *suffix)
{
  g_autofree char *name = g_path_get_basename (p->stem), *path = g_strconcat ("./", name, suffix, NULL);
  return ls_gnuplot_quote (path);
}

void
ls_picture_write_data_name (const LsPicture *p, FILE *out)
{
  g_autofree char *quoted = quote_name (p, ".dat");
  fprintf (out, "if (!exists('data')) data = %s\n", quoted);
}

void
ls_picture_write_margins (FILE *out, double left, double right, double top, double bottom)
{
  fprintf (out,
           "set lmargin at screen %.6f\n"
           "set rmargin at screen %.6f\n"
           "set tmargin at screen %.6f\n"
           "set bmargin at screen %.6f\n",
           left, right, top, bottom);
}

void
ls_picture_write_terminal (const LsPicture *p, FILE *out, int width, int height, const char *svg_fonts,
                           const char *png_fonts)
{
  g_autofree char *quoted = quote_name (p, p->suffix);
  fprintf (out, "if (!exists('output')) output = %s\n", quoted);
  fprintf (out,
           "%s # points; pixels in SVG\n"
           "if (output[strlen(output)-3:] eq '.svg') {\n"
           "  %s\n"
           "  set terminal svg name 'Lockstep' enhanced size %d,%d dynamic font 'DejaVu Sans,12' background "
           "'#ffffff'\n"
           "} else { if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {\n"
           "  set terminal pngcairo enhanced size %d,%d font 'DejaVu Sans,9.5'\n"
           "} else {\n"
           "  set terminal png enhanced truecolor size %d,%d\n"
           "}}\n"
           "if (!exists('to_stdout')) set output output\n\n",
           png_fonts, svg_fonts, width, height, width, height, width, height);
}
