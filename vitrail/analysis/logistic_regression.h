// SPDX-License-Identifier: Apache-2.0
#pragma once
// Multinomial logistic regression with an L2 penalty (Hastie, Tibshirani & Friedman 2009, "The Elements of Statistical
// Learning", section 4.4), in double precision.  It minimises what scikit-learn's LogisticRegression does.
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

struct LogisticRegressionOptions {
  double c = 1;                   // inverse strength of the penalty, above 0
  double tolerance = 1e-4;        // stop if no element of the gradient of the objective is larger
  int64_t max_iterations = 1000;  // iterations of L-BFGS
};

// The logits of features x are weight·x + bias.
struct LinearClassifier {
  Tensor weight, bias;  // f64 [classes, D] and [classes]; each column sums to 0
  int64_t iterations = 0;
  double largest_gradient = 0;  // absolute value of the largest element of the gradient
  bool converged = false;       // whether the tolerance was reached
};

// Minimises over W and b
//   1/n · Σᵢ −log softmax(W·xᵢ + b)[yᵢ] + λ/2 · ‖W‖²,   λ = 1 / (c·n), and 2 / (c·n) for two classes.
// For two classes this is binary logistic regression with the weight w = W₁ − W₀ and the penalty ‖w‖² / (2·c·n).
// features [n, D], labels [n] in [0, classes), at least two classes.  `start`, if not null, is where the search starts.
// Throws Error for bad options and arguments, and for features that are not finite.
LinearClassifier fit_logistic_regression(const Tensor& features, const std::vector<int64_t>& labels, int64_t classes,
                                         const LogisticRegressionOptions& options = {},
                                         const LinearClassifier* start = nullptr);

// f64 [n, classes].
Tensor logits(const LinearClassifier& classifier, const Tensor& features);

// How well logits [n, classes] fit labels.
struct Fit {
  double loss = 0;  // mean cross-entropy
  double top1 = 0;  // fraction of rows whose largest logit, the first of equal ones, is the label's
};
Fit fit_of(const Tensor& logits, const std::vector<int64_t>& labels);

}  // namespace vitrail::analysis
