/* io/picture.h — the files of one chart: NAME.svg or NAME.png, and NAME.gp and NAME.dat
 * beside it, to be edited and drawn again with `gnuplot NAME.gp`. */
#ifndef LS_IO_PICTURE_H
#define LS_IO_PICTURE_H

#include <glib.h>
#include <stdio.h>

#include "io/write_file.h"

typedef struct {
  const char *suffix; /* static: ".svg", ".png" */
  char *path, *stem, *data, *script;
} LsPicture;

/* Names the files and makes sure that all three can be written; creates nothing.
 * LS_ERROR_USAGE: another suffix, or what ls_write_file_check() refuses; LS_ERROR_IO:
 * one of them cannot be written there, or gnuplot is missing. Clear in either case. */
gboolean ls_picture_init (LsPicture *p, const char *path, GError **error);
void ls_picture_clear (LsPicture *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsPicture, ls_picture_clear)

/* Whether ls_picture_init() would do. */
gboolean ls_picture_check (const char *path, GError **error);

/* Writes data and script, each given `user`, and draws; on failure no new file stays.
 * LS_ERROR_IO: cannot be written, or gnuplot failed. */
gboolean ls_picture_draw (const LsPicture *p, LsWriteFunc write_data, LsWriteFunc write_script, void *user,
                          GError **error);

/* The name of a file beside the script, such as that with ".dat", as gnuplot's string;
 * newly allocated. */
char *ls_picture_quote (const LsPicture *p, const char *suffix);

/* In the script: opens the terminal that the output's suffix asks for. Sizes in pixels;
 * `fonts` sets variables for each of both: points in PNG, pixels in SVG. */
void ls_picture_write_terminal (const LsPicture *p, FILE *out, int width, int height, const char *svg_fonts,
                                const char *png_fonts);

#endif
