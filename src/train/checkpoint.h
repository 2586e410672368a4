/* train/checkpoint.h — what checkpoints of a training run cost, and how often they are worth it.
 *
 * Problem. A checkpoint holds a job up for C seconds; a failure throws away what was done since the last one.
 * Too many cost more than they save.
 *
 * Equations. Failures are exponential with mean M, and a restart takes R, in which the next failure may come.
 * A piece of work of t seconds with the checkpoint behind it takes in the mean
 *
 *     E (t) = M exp (R / M) (exp ((t + C) / M) - 1)
 *
 * and E (t) / t is least where (1 - t / M) exp ((t + C) / M) = 1, so at
 *
 *     t = M (1 + W (-exp (-1 - C / M)))            W: Lambert's, upper branch
 *
 * whatever R is. Young's and Daly's formulas come near it:
 *
 *     Young  t = sqrt (2 C M)
 *     Daly   t = sqrt (2 C M) (1 + sqrt (C / 2 M) / 3 + C / 18 M) - C      (M if C >= 2 M)
 *
 * Worked example. 16,384 GPUs that fail every 3.09 h, C 10 s, R 300 s: Young 472 s, Daly 465 s, exactly
 * 465 s; of each 465 s that count, 499 pass: 93.1 %.
 *
 * Reference: Young 1974 (Communications of the ACM 17, 530); Daly 2006 (Future Generation Computer Systems
 * 22, 303), equations 20 and 37. */
#ifndef LS_TRAIN_CHECKPOINT_H
#define LS_TRAIN_CHECKPOINT_H

/* Seconds; C and M positive and finite. */
double ls_young_interval_s (double save_s, double mtbf_s);
double ls_daly_interval_s (double save_s, double mtbf_s);
double ls_best_interval_s (double save_s, double mtbf_s);

/* E (t); mtbf_s INFINITY: t + C. */
double ls_expected_piece_s (double work_s, double save_s, double restart_s, double mtbf_s);

#endif
