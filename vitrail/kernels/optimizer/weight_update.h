// SPDX-License-Identifier: Apache-2.0
#pragma once
// One optimiser's step on a run of n elements: weight w, gradient g, and the buffers that the rule keeps.  Each runs on
// the calling thread; vitrail/optim cuts the parameters into runs.  f32 on the active instruction set, f64 plainly.
//
// An element's operations come in PyTorch's order and are rounded where PyTorch rounds, so that two trainings drift
// apart by the rounding of their gradients alone.  Constants are given in f64 and rounded once to the elements' type.
#include <cstdint>

namespace vitrail::kernels {

// AdamW and LAMB at step t.
struct AdamStep {
  double gradient_scale = 1;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double bias1 = 1, root_bias2 = 1;  // 1 − β1^t, √(1 − β2^t)
  double rate = 0, weight_decay = 0;
};

// m ← m + (1 − β1)(g − m), v ← β2 v + (1 − β2) g²,
// w ← (1 − rate · decay) w − rate / bias1 · m / (√v / root_bias2 + ε)
void adamw(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step);
void adamw(double* w, const double* g, double* m, double* v, int64_t n, const AdamStep& step);

// LAMB needs two norms of a whole parameter between its halves: of w, and of the update
// u = (m / bias1) / (√v / root_bias2 + ε) + decay · w.
struct LambSquares {
  double weight = 0, update = 0;
};
LambSquares lamb_moments(const float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step);
LambSquares lamb_moments(const double* w, const double* g, double* m, double* v, int64_t n, const AdamStep& step);
// w ← w − rate · (ratio · u), from the moments that lamb_moments() has left.
void lamb_apply(float* w, const float* m, const float* v, int64_t n, double ratio, const AdamStep& step);
void lamb_apply(double* w, const double* m, const double* v, int64_t n, double ratio, const AdamStep& step);

struct SgdStep {
  double gradient_scale = 1;
  double rate = 0, weight_decay = 0, momentum = 0;
  bool nesterov = false;
};

// d = g + decay · w, b ← momentum · b + d, w ← w − rate · (nesterov ? d + momentum · b : b).  b may be null: momentum
// 0.
void sgd(float* w, const float* g, float* b, int64_t n, const SgdStep& step);
void sgd(double* w, const double* g, double* b, int64_t n, const SgdStep& step);

struct LionStep {
  double gradient_scale = 1;
  double beta1 = 0.9, beta2 = 0.99;
  double rate = 0, weight_decay = 0;
};

// w ← (1 − rate · decay) w − rate · sign(m + (1 − β1)(g − m)), m ← m + (1 − β2)(g − m)
void lion(float* w, const float* g, float* m, int64_t n, const LionStep& step);
void lion(double* w, const double* g, double* m, int64_t n, const LionStep& step);

// a ← a + weight · (b − a), from the nearer end: weight 1 gives b itself.
void lerp(float* a, const float* b, int64_t n, double weight);
void lerp(double* a, const double* b, int64_t n, double weight);

void scale(float* x, int64_t n, double factor);
void scale(double* x, int64_t n, double factor);

// Σx² in f64.  Of f32 elements it is infinite or NaN exactly when one of them is: 2^127 squared fits a double.
double sum_of_squares(const float* x, int64_t n);
double sum_of_squares(const double* x, int64_t n);

}  // namespace vitrail::kernels
