// SPDX-License-Identifier: Apache-2.0
#pragma once
// One optimiser step on n consecutive elements: weights w, gradients g and the state that the rule keeps.  Each
// function runs on the calling thread; vitrail/optim splits the parameters between threads.
//
// Operations have the order of PyTorch's optimisers and are rounded where those round, element by element.  Constants
// are given in f64 and rounded once to the type of the elements.  f64 elements run the scalar reference.
#include <cstdint>

namespace vitrail::kernels {

// The constants of AdamW (Loshchilov & Hutter 2019, algorithm 2) and LAMB (You et al. 2020, algorithm 2) at step t ≥ 1.
struct AdamStep {
  double gradient_scale = 1;  // g is multiplied by this first (gradient clipping)
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double bias_correction1 = 1, sqrt_bias_correction2 = 1;  // 1 − β1^t, √(1 − β2^t)
  double rate = 0, weight_decay = 0;                       // the learning rate
};

// m ← m + (1 − β1)(g − m), v ← β2 v + (1 − β2) g²,
// w ← (1 − rate · weight_decay) w − rate / bias_correction1 · m / (√v / sqrt_bias_correction2 + ε)
void adamw(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step);
void adamw(double* w, const double* g, double* m, double* v, int64_t n, const AdamStep& step);

// LAMB scales a parameter's update u by a ratio of two norms over the complete parameter, so its step has two halves.
//   u = (m / bias_correction1) / (√v / sqrt_bias_correction2 + ε) + weight_decay · w
struct LambSquares {
  double weight = 0, update = 0;  // Σ w², Σ u²
};
// The first half: updates m and v as adamw() does and returns the sums over these n elements.
LambSquares lamb_moments(const float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step);
LambSquares lamb_moments(const double* w, const double* g, double* m, double* v, int64_t n, const AdamStep& step);
// The second half: w ← w − rate · (ratio · u), from the m and v that lamb_moments() updated.
void lamb_apply(float* w, const float* m, const float* v, int64_t n, double ratio, const AdamStep& step);
void lamb_apply(double* w, const double* m, const double* v, int64_t n, double ratio, const AdamStep& step);

struct SgdStep {
  double gradient_scale = 1;
  double rate = 0, weight_decay = 0, momentum = 0;
  bool nesterov = false;
};

// SGD as torch.optim.SGD (Sutskever et al. 2013): d = g + weight_decay · w, b ← momentum · b + d,
// w ← w − rate · (nesterov ? d + momentum · b : b).  b may be null: no momentum.
void sgd(float* w, const float* g, float* b, int64_t n, const SgdStep& step);
void sgd(double* w, const double* g, double* b, int64_t n, const SgdStep& step);

struct LionStep {
  double gradient_scale = 1;
  double beta1 = 0.9, beta2 = 0.99;
  double rate = 0, weight_decay = 0;
};

// Lion (Chen et al. 2023, algorithm 2): w ← (1 − rate · weight_decay) w − rate · sign(m + (1 − β1)(g − m)),
// m ← m + (1 − β2)(g − m).
void lion(float* w, const float* g, float* m, int64_t n, const LionStep& step);
void lion(double* w, const double* g, double* m, int64_t n, const LionStep& step);

// a ← a + weight · (b − a), computed from the nearer end as torch.lerp does: weight 1 gives b itself.
void lerp(float* a, const float* b, int64_t n, double weight);
void lerp(double* a, const double* b, int64_t n, double weight);

// x ← factor · x
void scale(float* x, int64_t n, double factor);
void scale(double* x, int64_t n, double factor);

// Σ x² in f64.  For f32 elements it is infinite or NaN only if one of them is: the square of 2^127 fits in f64.
double sum_of_squares(const float* x, int64_t n);
double sum_of_squares(const double* x, int64_t n);

}  // namespace vitrail::kernels
