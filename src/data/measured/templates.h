/* data/measured/templates.h — tables to fill in: what each column means as comments, a header, and a row as
 * an example. Our own readers read them as they are. */
#ifndef LS_DATA_MEASURED_TEMPLATES_H
#define LS_DATA_MEASURED_TEMPLATES_H

/* "runs" (data/measured/read_cases.h), "nccl" (data/measured/read_nccl_tests.h), "kernels"
 * (data/measured/read_kernels.h). Newly allocated; NULL: there is none of that name. */
char *ls_template_text (const char *name);

#endif
